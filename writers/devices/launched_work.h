/// All work of the devices of a process with the calls that launched it, joined by correlation id
/// and time (calls.h) when all of both has come:
///
///     work, by id and begin  ----+
///                                +---->  work with its call, by device and begin
///     calls, by id and begin ----+
///
/// Beside the calls are the external correlation ids that the program gave them, if any.
///
/// Thread: one.   Cost: 300 ns per piece of work and 100 per call; memory 3.75 kStoreBytes, with
/// ids 4.5, then temporary files (SortedStore) of kItemBytes per piece of work, a Call and a CallId
/// each, at most `max_file_bytes` as items are (SortedStore::file_bytes).   Errors: kIo.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "writers/devices/calls.h"
#include "writers/devices/devices.h"
#include "writers/devices/external_ids.h"
#include "writers/devices/missing_launches.h"
#include "writers/waits/sorted_store.h"

namespace aon::writers::devices {

struct Item {
  uint64_t start_ns;
  uint64_t end_ns;
  uint32_t device;
  uint32_t correlation;
  uint32_t region;  ///< global
  WorkClass work;
  bool is_kernel;
  uint16_t reserved;

  bool operator<(const Item& other) const {
    return correlation != other.correlation ? correlation < other.correlation
                                            : start_ns < other.start_ns;
  }
};

struct LaunchedItem {
  Item item;
  Call call;  ///< of correlation 0: not known

  bool operator<(const LaunchedItem& other) const {
    if (item.device != other.item.device) return item.device < other.item.device;
    return item.start_ns < other.item.start_ns;
  }
  /// Null: not known.
  const Call* known_call() const { return call.correlation != 0 ? &call : nullptr; }
};
static_assert(sizeof(Item) + sizeof(LaunchedItem) == DeviceAnalysis::kItemBytes);
static_assert(sizeof(Call) <= DeviceAnalysis::kItemBytes);

class LaunchedWork {
 public:
  using Reader = SortedStore<LaunchedItem>::Reader;

  LaunchedWork(std::filesystem::path folder, uint64_t max_file_bytes,
               size_t store_bytes = DeviceAnalysis::kStoreBytes);

  void clear();
  bool has_work() const { return work_count_ != 0; }
  /// What was to come passed `max_file_bytes`: there is no work, and none is taken.
  bool has_no_room() const { return has_no_room_; }
  /// For want of room: then no launch is known.
  uint64_t left_out_call_count() const { return left_out_call_count_; }

  Status add(const Item& item);
  /// Calls give way to work.
  Status add(const Call& call);
  /// And ids to both.
  Status add(const CallId& id);
  /// For want of room.
  uint64_t left_out_id_count() const { return left_out_id_count_; }
  /// Ends with neither work nor calls but the joined: `missing` gets the launches, in order,
  /// `totals` what there is of each external id.
  Result<Reader> join(const Captures& captures, MissingLaunches* missing, ExternalIdTotals* totals);

 private:
  class Merge;
  class IdsOfCalls;

  uint64_t work_bytes(uint64_t file_bytes) const;
  uint64_t id_bytes() const { return ids_ ? ids_->file_bytes() : 0; }
  void leave_out_calls();
  void leave_out_ids();

  std::filesystem::path folder_;
  uint64_t max_file_bytes_;
  size_t item_count_;  ///< in memory
  std::optional<SortedStore<Item>> work_;
  std::optional<SortedStore<Call>> calls_;
  std::optional<SortedStore<CallId>> ids_;
  std::optional<SortedStore<LaunchedItem>> joined_;
  uint64_t work_count_ = 0;
  uint64_t call_count_ = 0;
  uint64_t left_out_call_count_ = 0;
  uint64_t id_count_ = 0;
  uint64_t left_out_id_count_ = 0;
  bool has_no_room_ = false;
  bool has_graphs_ = false;
};

}  // namespace aon::writers::devices
