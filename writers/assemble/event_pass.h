/// The pass over all events: every location of the model, one after the other, from the spool
/// through EventOrder to all writers.
/// Owner: assemble().   Thread: one.   Cost: about 60 ns per record without the writers'; memory of
/// one location and one process's block index.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/spool/process_index.h"
#include "writers/assemble/device_spans.h"
#include "writers/assemble/event_order.h"
#include "writers/assemble/model.h"
#include "writers/assemble/nccl_overwritten.h"
#include "writers/assemble/nccl_spans.h"
#include "writers/assemble/span_window.h"
#include "writers/ledger/tally.h"
#include "writers/writer.h"

namespace aon::writers {

/// A writer that takes part; after its first error it gets nothing more.
struct WriterSlot {
  std::string name;
  std::unique_ptr<Writer> writer;
  Status status;
  bool makes_files = true;
};

class EventPass {
 public:
  /// `beat` is called now and then, at least once per location. Work of devices is sorted with a
  /// temporary file of at most `device_bytes`; with kWithoutDevices none is shown.
  static constexpr uint64_t kWithoutDevices = UINT64_MAX;
  EventPass(const JobModel& parts, std::span<WriterSlot> writers, std::function<void()> beat,
            uint64_t device_bytes = kWithoutDevices - 1)
      : parts_(parts),
        writers_(writers),
        beat_(std::move(beat)),
        has_devices_(device_bytes != kWithoutDevices),
        device_spans_(parts.job.folder, device_bytes),
        nccl_spans_(parts.job.folder, device_bytes) {}

  /// begin() to finish() of all writers. `alike_failure_count`: of WaitSummary.
  /// Errors: kIo of the spool; a writer's error only ends that writer.
  Status run(uint64_t alike_failure_count = 0);

  using GroupSink = std::function<Status(uint32_t group)>;
  /// The same for the locations of some groups, without finish(). Behind the last location of each
  /// `done` is called.   Errors: also those of `done`.
  Status run_groups(const std::vector<bool>& is_own, const GroupSink& done);

  const Outcome& outcome() const { return outcome_; }
  const std::vector<LocationTally>& tallies() const { return tallies_; }
  LeftOutSpans left_out_spans() const {
    return {device_spans_.left_out_work_count(), device_spans_.left_out_host_count(),
            nccl_spans_.left_out_count(),
            device_spans_.unsorted_count() + nccl_spans_.unsorted_count()};
  }

 private:
  Status run_location(const Location& location);
  void end_groups();
  void begin_group(const Group& group);
  void keep_device_spans(const Group& group, std::span<const Record> records);
  void run_device_stream(const Location& location);
  Status run_nccl_timeline(const Location& location, const StreamEvents::Sink& sink);
  Status read_stream(const Location& location, const spool::Process* process, EventOrder* order,
                     LocationTally* tally);
  Status use_index(uint32_t node, uint32_t process, const spool::Process* told);
  Status add_tail(const spool::Process& process, uint16_t slot, LocationTally* tally,
                  EventOrder* order);
  void for_each_writer(const std::function<Status(Writer*)>& action);

  const JobModel& parts_;
  std::span<WriterSlot> writers_;
  std::function<void()> beat_;
  bool has_devices_;
  Outcome outcome_;
  std::vector<LocationTally> tallies_;
  std::unique_ptr<spool::ProcessIndex> index_;
  uint32_t index_node_ = 0;
  GroupRequests requests_;            ///< of the group
  OpenIo open_io_;                    ///< the same
  DeviceSpans device_spans_;          ///< the same
  NcclSpans nccl_spans_;              ///< the same
  NcclOverwritten nccl_overwritten_;  ///< of the process of index_
  SpanWindow span_window_;            ///< the same
  uint32_t request_group_ = 0xffffffffu;
};

/// Where a collective failed on all members alike, none has an end that the others have not.
void take_out_alike(uint64_t alike_failure_count, Outcome* outcome);

/// True when every message and transfer is in the output: no record lost, nothing open or
/// unmatched, and no rank of the world is missing.
bool is_complete(const Model& model, const Outcome& outcome,
                 std::span<const LocationTally> tallies);

}  // namespace aon::writers
