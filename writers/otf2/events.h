/// Writes the events of one location into its OTF2 event file. Ids stay local.
/// Owner: Otf2Writer.   Thread: one.   Cost: about 15 ns per OTF2 record, no allocation.
#pragma once

#include <otf2/otf2.h>

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "writers/external_id.h"
#include "writers/otf2/ids.h"
#include "writers/writer.h"

namespace aon::writers::otf2 {

class EventEncoder {
 public:
  EventEncoder();

  /// From now on events go to `file`; samples too, unless they are kept `samples_apart`. Locations
  /// of a group come one after the other.
  void begin(OTF2_EvtWriter* file, bool samples_apart, const Model& model, uint32_t group) {
    if (group != group_) {
      windows_.clear();
      locks_.clear();
      opened_files_.clear();
    }
    group_ = group;
    file_ = file;
    model_ = &model;
    counters_.clear();
    columns_.clear();
    leave_is_open_ = false;
    leave_is_cut_ = false;
    samples_apart_ = samples_apart;
    apart_.clear();
    is_device_ = false;
    correlation_ = 0;
    external_ids_.clear();
    copy_.reset();
    copy_count_ = 0;
    open_copies_.clear();
  }

  /// The location is a stream of a device (device_windows.h).
  void set_device(uint32_t rank_in_window);
  /// Copies that were written since begin().
  uint64_t copy_count() const { return copy_count_; }

  /// The location has counters: column i of `columns` has those of number i, of `count` columns.
  /// Each Enter and Leave gets them, as a class that is SYNCHRONOUS_STRICT promises.
  void set_counters(std::vector<uint32_t> columns, size_t count);

  /// The samples since the last call that were kept apart.
  std::vector<Event> take_samples() { return std::exchange(apart_, {}); }

  /// Errors: kIo with OTF2's reason and the kind of event.
  Status write(std::span<const Event> events);

  /// A value of a metric, on the METRIC location that `file` is.
  static OTF2_ErrorCode write_sample(OTF2_EvtWriter* file, const Event& event,
                                     uint32_t metric_class);

  /// One region from `start_ns` to `end_ns`: a location without records is not drawn as idle.
  Status write_no_records(uint64_t start_ns, uint64_t end_ns);

 private:
  OTF2_ErrorCode write_one(const Event& event);
  OTF2_ErrorCode put_enter(uint64_t time_ns, uint32_t region, OTF2_AttributeList* attributes);
  OTF2_ErrorCode put_leave(uint64_t time_ns, uint32_t region, OTF2_AttributeList* attributes);
  OTF2_ErrorCode put_counters(uint64_t time_ns);
  void keep_counters(const Event& event);
  OTF2_ErrorCode enter(const Event& event);
  OTF2_ErrorCode message(const Event& event);
  OTF2_ErrorCode leave(const Event& event);
  OTF2_ErrorCode sample(const Event& event);
  OTF2_ErrorCode mark(const Event& event);
  void add_value(ValueType type, uint64_t value);
  OTF2_ErrorCode lost(const Event& event);
  OTF2_ErrorCode collective(const Event& event);
  OTF2_ErrorCode rma(const Event& event);            // rma_events.cpp
  OTF2_ErrorCode transfer(const Event& event);       // rma_events.cpp
  OTF2_ErrorCode create_window(const Event& event);  // rma_events.cpp
  OTF2_ErrorCode region(const Event& event);         // device_events.cpp
  OTF2_ErrorCode enter_device(const Event& event);   // device_events.cpp
  OTF2_ErrorCode leave_device(const Event& event);   // device_events.cpp
  OTF2_ErrorCode begin_copy(uint64_t time_ns);       // device_events.cpp
  OTF2_ErrorCode device_gap(const Event& event);     // device_events.cpp
  OTF2_ErrorCode io(const Event& event);             // io_events.cpp
  OTF2_ErrorCode open_file(const Event& event);      // io_events.cpp
  OTF2_ErrorCode begin_io(const Event& event);       // io_events.cpp

  struct ListDeleter {
    void operator()(OTF2_AttributeList* list) const { OTF2_AttributeList_Delete(list); }
  };

  OTF2_EvtWriter* file_ = nullptr;
  const Model* model_ = nullptr;
  std::unique_ptr<OTF2_AttributeList, ListDeleter> attributes_;  ///< emptied by every write
  std::vector<Event> apart_;
  std::vector<uint32_t> columns_;           ///< by number of the counter
  std::vector<OTF2_MetricValue> counters_;  ///< by column, as last told
  std::vector<OTF2_Type> counter_types_;
  bool samples_apart_ = false;
  // Of a process, as far as its locations have been written.
  uint32_t group_ = UINT32_MAX;
  std::unordered_set<uint32_t> windows_;          ///< that have their RmaWinCreate
  std::set<std::pair<uint32_t, int32_t>> locks_;  ///< window and target, that are held
  std::unordered_set<uint32_t> opened_files_;     ///< that have their IoCreateHandle
  // Of a stream of a device.
  bool is_device_ = false;
  uint32_t own_rank_ = 0;
  std::optional<Event> copy_;  ///< whose Enter comes next
  uint64_t copy_count_ = 0;
  std::vector<uint64_t> open_copies_;     ///< of open regions, 0: no copy
  bool leave_is_open_ = false;            ///< kOpenAtEnd came: the next Leave gets the attribute
  bool leave_is_cut_ = false;             ///< the same of kCut
  uint32_t correlation_ = 0;              ///< of the work or call whose Enter comes next, 0: none
  std::vector<ExternalId> external_ids_;  ///< of the call whose Enter comes next, one of each kind
};

}  // namespace aon::writers::otf2
