/// What the events of a job's processes add up to: all rows of profile.h5 that are made of events,
/// but for series and for what analyses of their own find. It is the same for whole jobs and for
/// shares of one: a share hands over its sums process by process, and the one that makes the file
/// goes on as if it had had the events.
///
///     whole:  begin, add ..., end -> sink                 of each location
///     share:  begin, add ..., end; save                   rows of locations are kept up to there
///     then:   load -> sink                                of each of these locations
///
/// Thread: one.   Cost: about 10 ns per event; memory for the rows of one process, 64 rows per rank
/// of messages, transfers and files each, and what writers/nccl/operations.h says.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "writers/nccl/operations.h"
#include "writers/nccl/proxy_table.h"
#include "writers/profile/call_samples.h"
#include "writers/profile/counters.h"
#include "writers/profile/device_work.h"
#include "writers/profile/io.h"
#include "writers/profile/messages.h"
#include "writers/profile/profile.h"
#include "writers/profile/transfers.h"
#include "writers/writer.h"

namespace aon::writers::hdf5 {

using RegionRows = std::span<const profile::RegionStatistics>;
using CounterRows = std::span<const profile::CounterStatistics>;

/// Takes the rows of a location, which live as long as the call.
using LocationSink = std::function<void(const Location& location, RegionRows, CounterRows)>;

class EventSums {
 public:
  /// `sink` empty: of a share, whose rows are saved.
  EventSums(const Model& model, LocationSink sink);

  /// `location` is one of the model's.
  void begin(const Location& location);
  /// Any event but a kSample.
  void add(const Event& event);
  void end();
  /// Of the process whose locations came last.
  void add_nccl_time(const devices::TimedOperation& operation) { nccl_.add_time(operation); }
  void add_nccl_wait(const nccl::OperationWait& wait) { nccl_.add_wait(wait); }
  /// No more come.
  void finish() {
    device_work_.finish();
    nccl_.finish();
  }

  void save(StateOut* out);
  Status load(StateIn* in);

  const profile::MessageTable& messages() const { return messages_; }
  const profile::TransferTable& transfers() const { return transfers_; }
  const profile::IoTable& io() const { return io_; }
  const profile::CallSamples& call_samples() const { return call_samples_; }
  const profile::DeviceWorkTable& device_work() const { return device_work_; }
  const nccl::OperationTable& nccl() const { return nccl_; }
  const nccl::ProxyTable& nccl_proxy() const { return nccl_proxy_; }

 private:
  struct LocationRows {
    uint32_t location = 0;  ///< in Model::locations
    std::vector<profile::RegionStatistics> regions;
    std::vector<profile::CounterStatistics> counters;
  };

  Status check(const LocationRows& rows) const;

  const Model* model_;
  LocationSink sink_;
  const Location* location_ = nullptr;
  std::vector<LocationRows> kept_;
  profile::LocationProfile profile_;
  profile::LocationCounters counters_;
  profile::MessageTable messages_;
  profile::TransferTable transfers_;
  profile::IoTable io_;
  profile::CallSamples call_samples_;
  profile::DeviceWorkTable device_work_;
  nccl::OperationTable nccl_;
  nccl::ProxyTable nccl_proxy_;
};

}  // namespace aon::writers::hdf5
