/// The segment files of a node's spool: which block goes to which file, how much there is, and
/// which whole segment goes when there is too much.
///
/// An owner is a process (all its streams share a series of segments) or one chatty slot of a
/// process, which fills a series of its own and so evicts itself first. Blocks are buffered per
/// owner and written once per flush. The offset, block number and segment of every owner are
/// Versioned in its FileCell: restore() cuts what was written after the last commit.
///
///     segment: absent --first block--> current --limit reached--> closed --cap--> evicted
///
/// A file stays open while its owner writes, which on a shared file system saves two round trips a
/// flush. Where there are more owners than may be open those go first that wrote nothing lately.
/// The others take turns in the same order at each flush: closing the oldest would close just the
/// one that comes next, so the newest goes, and all but those too many stay open.
///
/// The last of a disk is the application's (core/base/disk_room.h): where less than that is free,
/// segments of an owner that has several go as at the cap, until it is or each owner has one.
/// Before it comes to that segments become small, so that they can go one by one.
///
/// While nothing can be written the newest blocks stay in memory, up to a bound, and are tried
/// again at each flush: a window that moves on, as of a flight recorder. A worker that is killed
/// then takes them with it.
/// Thread: the encode thread.   Cost: one write per owner and flush, 100 bytes per stream and
/// segment.   Errors: blocks that are given up are returned as their headers.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/agent/file_sink.h"
#include "core/agent/state.h"
#include "core/spool/files.h"
#include "core/spool/format.h"

namespace aon::agent {

/// Records of one stream, one behind another, that share a fate.
struct SequenceRange {
  uint64_t first_sequence = 0;
  uint64_t count = 0;  ///< counted records
  uint64_t first_ticks = 0;
  uint64_t last_ticks = 0;
};
using StreamKey = std::pair<uint16_t, uint16_t>;  ///< slot, context
/// More than one range where blocks in between could not be written.
using TallyMap = std::map<StreamKey, std::vector<SequenceRange>>;

struct SegmentLimits {
  uint64_t total_bytes;     ///< of all segments
  uint64_t segment_bytes;   ///< of one, at most
  uint64_t chatty_bytes;    ///< a slot that wrote more fills segments of its own
  uint64_t kept_bytes = 0;  ///< of blocks that could not be written
  uint32_t open_files = 256;
  std::chrono::nanoseconds room_period = std::chrono::seconds(1);  ///< between looks at the disk
};

/// What goes: the caller writes the losses, commits, then calls remove().
struct Victim {
  spool::SegmentName name;
  uint64_t bytes = 0;
  TallyMap losses;
  bool is_for_room = false;  ///< the disk is nearly full, the cap not reached
};

class Segments {
 public:
  /// Encodes one block with the number it gets in its file.
  using Seal =
      std::function<Result<spool::BlockHeader>(uint64_t block_sequence, std::vector<uint8_t>* out)>;

  Segments(State* state, FileSink* sink, SegmentLimits limits)
      : state_(state), sink_(sink), limits_(limits) {}
  ~Segments();
  Segments(const Segments&) = delete;
  Segments& operator=(const Segments&) = delete;

  /// Takes over the files in `folder`: cuts those of this agent to the last commit, removes what
  /// was created after it, and counts the rest.   Errors: kIo.
  Status restore(const std::string& folder);

  /// Buffers the block of (process, slot) that `seal` makes.   Errors: of `seal`.
  Result<spool::BlockHeader> append(uint32_t process, uint16_t slot, bool is_chatty,
                                    const Seal& seal);

  /// Writes all buffers. Of what could not be written the oldest blocks go to `lost`, all when it
  /// is the last time. Returns the errno of the last failure, or 0.
  int flush(bool is_last, std::vector<spool::BlockHeader>* lost);

  /// Stores the state of all changed files as part of the commit after `commit`.
  void stage_commit(uint64_t commit);

  /// Looks how much of the disk is free, once a `room_period`; next_victim() goes by it.
  void measure_room();

  /// The segment that must go to keep the limit or the floor, if any. Ends the current segment of
  /// its owner when that is the one, unless blocks wait for it.
  std::optional<Victim> next_victim();
  /// Unlinks it and forgets it.
  void remove(const spool::SegmentName& name);

  /// Closes the files of a process that has ended.
  void close_process(uint32_t process);

  uint64_t total_bytes() const noexcept { return total_bytes_; }
  bool is_chatty(uint64_t stream_bytes) const noexcept {
    return stream_bytes > limits_.chatty_bytes;
  }

 private:
  struct Segment {
    uint32_t number = 0;
    uint64_t bytes = 0;
    TallyMap tally;
  };
  struct Owner {
    uint32_t cell = kNoCell;        ///< kNoCell: left by an earlier agent, never written again
    std::vector<Segment> segments;  ///< oldest first; the last one is current if has_current
    bool has_current = false;
    bool is_changed = false;
    uint64_t block_sequence = 0;
    uint32_t next_segment = 0;
    int fd = -1;
    std::list<Owner*>::iterator open_at;  ///< valid while fd is
    uint64_t written_in = 0;              ///< number of the last flush
    std::vector<uint8_t> buffer;
    std::vector<spool::BlockHeader> buffered;
    std::vector<size_t> buffered_bytes;  ///< of each of these
    size_t failed_bytes = 0;             ///< of the buffer when it could not be written
    uint64_t total() const noexcept;
  };
  using OwnerKey = std::pair<uint32_t, uint32_t>;  ///< process, slot or kSharedFile

  Owner& owner_of(uint32_t process, uint32_t slot);
  spool::SegmentName name_of(const OwnerKey& key, uint32_t segment) const;
  Status restore_segment(const std::string& folder, const spool::SegmentName& name);
  void find_cells();
  int write_buffer(const OwnerKey& key, Owner& owner);
  void keep_newest(uint64_t kept_bytes, std::vector<spool::BlockHeader>* lost);
  static void drop_front(Owner& owner, size_t block_count, std::vector<spool::BlockHeader>* lost);
  /// Of the current one.
  uint64_t segment_limit() const noexcept;
  int open_current(const OwnerKey& key, Owner& owner);
  void close_file(Owner& owner);
  void close_one_file();
  void end_segment(Owner& owner);

  State* state_;
  FileSink* sink_;
  SegmentLimits limits_;
  std::map<OwnerKey, Owner> owners_;
  uint64_t total_bytes_ = 0;
  uint32_t current_count_ = 0;  ///< owners that have a current segment
  std::optional<std::chrono::steady_clock::time_point> last_look_;
  uint64_t floor_bytes_ = 0;            ///< of the disk, as last seen; 0: not known
  uint64_t room_bytes_ = ~uint64_t{0};  ///< that all segments may have, for the floor
  bool is_short_ = false;               ///< at the last look the floor was not free
  std::list<Owner*> open_;              ///< who has a file open, the last written last
  uint64_t flush_count_ = 0;
};

}  // namespace aon::agent
