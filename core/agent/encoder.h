/// The encode side of a worker: staging, samples and inbox -> blocks and definitions -> files, with
/// one commit per flush. Everything between two commits is repeated by the next worker if this one
/// is killed; everything before a commit is done for good.
///
///     consume: staging entries are handed to their streams; slot 0's become definitions
///     flush:   streams -> segments -> definitions -> commit -> staging tail -> evictions
///
/// An earlier agent of the launch may have written of the node in the same folder. Its streams, its
/// counts and what it cost go on: what this agent measures is added to where the folder stands.
///
/// The agent's own samples are few: they wait in their cells for a flush of everything, because a
/// block has a header, and one of two dozen records compresses badly.
///
/// Thread: one, the encode thread; wants_flush() and tail() are for the others too.
/// Cost: about 30 ns per record.   Errors: a full disk is counted per stream, and tried again.
#pragma once

#include <aon/mutex.h>
#include <errno.h>

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/agent/definitions_log.h"
#include "core/agent/file_sink.h"
#include "core/agent/inbox.h"
#include "core/agent/segments.h"
#include "core/agent/staging.h"
#include "core/agent/state.h"
#include "core/agent/stream_log.h"

namespace aon::agent {

/// Activity of the processes, shared with the housekeeping thread.
class ActivityTable {
 public:
  std::shared_ptr<Activity> of(uint32_t process);
  void forget(uint32_t process);

 private:
  Mutex m_;
  std::map<uint32_t, std::shared_ptr<Activity>> table_ AON_GUARDED_BY(m_);
};

enum class FlushExtent {
  kEvents,  ///< what ranks have recorded; samples only where they cannot wait
  kAll,
  kLast,  ///< the same; what cannot be written now is counted as lost
};

struct EncoderSettings {
  std::string folder;  ///< a path to DIR/spool/NODE
  std::string host;
  std::string launch_id;
  NodeDefinition node;
  SegmentLimits limits;
  uint64_t definitions_bytes;  ///< limit of the definition file
};

/// What helps where a file of the spool cannot be written.
const char* disk_remedy(int error);

class Encoder {
 public:
  Encoder(const EncoderSettings& settings, State* state, const Staging* staging, FileSink* sink,
          Inbox* inbox, ActivityTable* activity);

  /// Sets tail() to the last commit. Before any other thread starts.
  void resume_tail() noexcept;
  /// Takes over what the last worker left.   Errors: kIo.
  Status restore();

  /// Hands everything in staging and inbox to its streams; encodes streams that fill a block.
  void consume();
  /// Writes everything that was consumed and commits it.
  void flush(FlushExtent extent = FlushExtent::kAll);

  /// True when so much was consumed since the last commit that staging would fill up.
  bool wants_flush() const noexcept;
  /// Drain thread: staging before this offset may be reused.
  const std::atomic<uint64_t>& tail() const noexcept { return tail_; }
  /// Housekeeping: bytes of the spool on disk.
  uint64_t disk_bytes() const noexcept { return disk_bytes_.load(std::memory_order_relaxed); }
  /// errno of the last failed write, 0 when the last flush succeeded.
  int disk_error() const noexcept { return disk_error_.load(std::memory_order_relaxed); }

 private:
  using SegmentList = std::map<uint32_t, std::vector<spool::SegmentName>>;

  /// A definition that arrives in fragments.
  struct Assembly {
    uint32_t type = 0;
    uint32_t total_bytes = 0;
    std::vector<uint8_t> bytes;
  };

  StreamLog& stream(uint32_t cell);
  void take_staging();
  void take_inbox();
  bool are_samples_many() const noexcept;
  void take_samples();
  const SampleCell& counted_on(const SampleCell& sample);
  void take_definitions(uint32_t process, const StagingEntry& entry);
  /// False: the definition is whole, but the file has no room for it.
  bool take_fragment(uint32_t process, const RecordHead& head, std::span<const uint8_t> bytes);
  bool is_outdated(const InboxDefinition& definition) const;
  void encode(StreamLog* log);
  void write_losses(const std::vector<spool::BlockHeader>& lost);
  void write_processes();
  void write_process_start(const ProcessCell& cell);
  void finish_process(uint32_t index);
  void forget(const std::vector<uint32_t>& ended);
  void forget_finished();
  void write_streams();
  void write_refused_definitions();
  void count_refused_definitions(uint32_t cell);
  void retry_failed();
  void commit();
  void evict();
  void report_disk(int error);
  void tell_disk(const std::string& reason, const char* remedy = disk_remedy(ENOSPC));
  void save_assemblies(uint64_t commit);
  void continue_earlier_agents();
  void find_earlier_metrics();
  void restore_streams();
  void restore_open_regions(uint32_t cell_index, const SegmentList& listed);
  uint32_t agent_cell(uint32_t process, uint16_t slot);

  EncoderSettings settings_;
  State* state_;
  const Staging* staging_;
  Inbox* inbox_;
  ActivityTable* activity_;
  Segments segments_;
  DefinitionsLog log_;
  spool::RecordBlockWriter block_writer_;
  std::unordered_map<uint32_t, StreamLog> streams_;  ///< by StreamCell
  std::unordered_map<uint32_t, Assembly> assemblies_;
  std::map<std::pair<uint32_t, uint16_t>, uint32_t> agent_cells_;  ///< by process and slot
  std::vector<InboxDefinition> inbox_definitions_;
  std::unordered_map<uint32_t, const MetricCell*> earlier_metrics_;  ///< by metric
  std::deque<SampleCell> counted_on_;  ///< since the last commit: runs point into it
  Progress progress_{};
  uint64_t read_ = 0;          ///< staging offset up to which entries were consumed
  uint64_t samples_read_ = 0;  ///< the same of samples
  bool is_room_told_ = false;  ///< that the disk is nearly full

  // Shared.
  std::atomic<uint64_t> tail_{0};
  std::atomic<uint64_t> disk_bytes_{0};
  std::atomic<int> disk_error_{0};
};

}  // namespace aon::agent
