/// The reader's side of a ring (aon/ring.h): takes committed records out of memory that a foreign,
/// possibly broken or hostile process writes at the same time.
///
/// Nothing in the mapping is trusted: every value is loaded once, checked against our own copy of
/// the geometry, then used. Record bytes are handed to the sink where they lie; the sink copies
/// them once and nobody decodes before that copy. A stream that does not validate is cut: it is
/// never read again, the others go on.
///
/// Exactly once, also when the reader is SIGKILLed at any instruction and another one continues:
///
///     sink.take(piece)   copies the bytes together with piece.after, then makes `after` the
///                        position of the stream               (the sink's memory outlives us)
///     sink.moved(...)    the position of the next chunk; the old one stands in `to_free`
///     free bit set       after that, never before
///     sink.moved(...)    `to_free` empty again
///
/// restore() never frees what stands in `to_free`: the bit may be set already, and a chunk freed
/// twice would be written by two threads. A chunk lost to that is 4 KiB of that process's pool.
///
/// Thread: one reader per ring.   Owner: the caller keeps the mapping alive.
/// Cost: one memcpy by the sink; per drain one load per used slot and stream.
#pragma once

#include <aon/record.h>
#include <aon/ring.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace aon::ring {

/// Why a stream was cut.
enum class Cut : uint32_t {
  kNone = 0,
  kBadFirstChunk,
  kBadNextChunk,
  kBadOwner,      ///< the chunk belongs to another stream
  kBadSequence,   ///< chunk or record numbers do not follow
  kBadCommitted,  ///< more than a chunk, not whole slots, or less than before
};
const char* cut_name(Cut cut);

/// Where one stream stands. Plain bytes: it may lie in shared memory; all zero is the beginning.
struct StreamPosition {
  uint64_t committed;       ///< of the current chunk, as last taken (bytes and count)
  uint64_t chunk_sequence;  ///< of the current chunk
  uint64_t first_sequence;  ///< of the current chunk
  uint64_t taken;           ///< counted records given to the sink
  uint64_t reserved;
  uint32_t chunk;  ///< only if has_chunk
  uint32_t has_chunk;
  uint32_t to_free;  ///< chunk number + 1 that is about to be freed; 0 none
  Cut cut;
};
static_assert(sizeof(StreamPosition) == 56);

/// Committed records of one stream, whole ones. `bytes` is untrusted and changes under us.
struct Piece {
  uint32_t slot;
  uint32_t context;
  uint64_t first_sequence;  ///< counted records of the stream before these
  uint32_t counted;         ///< counted records among these, as the writer says
  std::span<const uint8_t> bytes;
  StreamPosition after;
};

class Sink {
 public:
  virtual ~Sink() = default;
  /// Copies the bytes and stores `after` as the position. False: no room, nothing is taken.
  virtual bool take(const Piece& piece) = 0;
  /// Stores the position of a stream from which nothing was copied.
  virtual void moved(uint32_t slot, uint32_t context, const StreamPosition& position) = 0;
};

struct DrainLimits {
  uint64_t max_bytes = UINT64_MAX;  ///< given to the sink in one call; may be exceeded by a chunk
};

struct DrainResult {
  uint64_t bytes = 0;
  uint64_t counted = 0;
  uint32_t chunks_freed = 0;
  bool is_complete = true;  ///< false: the sink was full or the limit reached; more may be there
};

/// A call as its thread's open-span slot shows it.
struct OpenCall {
  uint64_t start_ticks;
  int32_t tid;
  uint32_t region;
  uint32_t communicator;
  uint64_t peer_tag;
  uint64_t bytes;
};

class RingReader {
 public:
  /// `base` is a ring of `geometry`, mapped or copied. `frees_chunks` false: a dead process's ring
  /// or a copy, the free map is left alone.
  RingReader(void* base, const RingGeometry& geometry, bool frees_chunks = true);

  /// Continues where another reader stopped; before the first drain.
  void restore(uint32_t slot, uint32_t context, const StreamPosition& position);
  const StreamPosition& position(uint32_t slot, uint32_t context) const {
    return positions_[slot * kContexts + context];
  }

  /// Takes what is committed. Streams take turns in being first.
  DrainResult drain(Sink& sink, const DrainLimits& limits = {});
  /// The same for one stream.
  DrainResult drain_stream(uint32_t slot, uint32_t context, Sink& sink,
                           const DrainLimits& limits = {});

  /// Slots that have been active, slot 0 included; never more than the geometry has.
  uint32_t slots_used() const;
  bool is_active(uint32_t slot) const;
  int32_t tid(uint32_t slot) const;
  /// Counted records the writer refused, pool full. Never decreases.
  uint64_t refused(uint32_t slot, uint32_t context);
  /// Counted records that are known to lie behind the place where the stream was cut: the highest
  /// number that a chunk of this stream bears. Grows with the writer; 0 for a whole stream. Only
  /// the first `chunk_count` are looked at: one without memory would get some.
  /// Cost: one load per chunk.
  uint64_t cut_count(uint32_t slot, uint32_t context, uint32_t chunk_count = UINT32_MAX) const;
  /// Events of threads that got no slot. Never decreases.
  uint64_t refused_no_slot();
  /// Exact call counts of the slot's call sites. False: it counts nothing.
  bool counters(uint32_t slot, std::span<uint64_t, kMaxCounters> out) const;

  /// Calls that were open when the process ended, outermost first, each as a record with kOpenAtEnd
  /// that lasts until `end_ticks`: a kSpan with the communicator (a32), the bytes (a64) and the
  /// peer and tag (first word). After the last drain of a dead process.
  std::vector<Record> open_calls(uint32_t slot, uint64_t end_ticks) const;
  /// The outermost call that a live thread is in; nothing when it is in none. Its fields are those
  /// of its start only if a later look finds the same start: it may end while it is read.
  std::optional<OpenCall> open_call(uint32_t slot) const;

 private:
  enum class Step { kMoved, kIdle, kFull, kCut };

  Step step(uint32_t slot, uint32_t context, Sink& sink, DrainResult* result);
  Step begin_stream(uint32_t slot, uint32_t context, Sink& sink);
  Step move_on(uint32_t slot, uint32_t context, uint32_t next, Sink& sink, DrainResult* result);
  Step cut(uint32_t slot, uint32_t context, Cut reason, Sink& sink);
  Cut check_chunk(uint32_t slot, uint32_t context, uint32_t index, uint64_t chunk_sequence,
                  uint64_t first_sequence) const;
  StreamPosition& at(uint32_t slot, uint32_t context) {
    return positions_[slot * kContexts + context];
  }
  bool was_recorded(uint32_t slot, uint64_t start_ticks) const;

  ThreadSlot& slot_at(uint32_t slot) const;
  ChunkHeader& chunk_at(uint32_t index) const;
  void set_free(uint32_t index);

  char* base_;
  const RingGeometry geometry_;
  const bool frees_chunks_;
  uint32_t first_slot_ = 0;  ///< of the next drain
  std::vector<StreamPosition> positions_;
  std::vector<uint64_t> refused_;
  uint64_t refused_no_slot_ = 0;
};

}  // namespace aon::ring
