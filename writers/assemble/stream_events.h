/// The events of one stream of a device, from work in the order of its begin: work that lies inside
/// other work is nested in it, work that only overlaps begins where that ends, and is counted.
/// Owner: DeviceSpans or NcclSpans, which says what stands for a piece of work.
/// Thread: one.   Cost: some ns per event; memory of a batch.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "writers/writer.h"

namespace aon::writers {

class StreamEvents {
 public:
  using Sink = std::function<Status(std::span<const Event>)>;
  static constexpr size_t kBatch = 2048;
  static constexpr size_t kMaxDepth = 64;  ///< deeper work begins where the one around it ends

  StreamEvents(Outcome* outcome, const Sink& sink) : outcome_(outcome), sink_(sink) {}
  virtual ~StreamEvents() = default;

  Status finish() {
    while (depth() != 0) leave();
    return flush();
  }

 protected:
  /// Ends what is over when work comes from `start_ns` to `end_ns`; `is_alone`: it lies in nothing.
  /// Returns when it is shown to begin.
  uint64_t make_room(uint64_t start_ns, uint64_t end_ns, bool is_alone) {
    uint64_t shown_ns = std::max(start_ns, last_ns_);
    while (depth() != 0 && ends_.back() <= shown_ns) leave();
    while (depth() != 0 && (is_alone || end_ns > ends_.back() || depth() >= kMaxDepth)) {
      shown_ns = std::max(shown_ns, ends_.back());
      leave();
    }
    if (shown_ns > start_ns) ++outcome_->device_overlap_count;
    ends_.push_back(std::max(end_ns, shown_ns));
    return shown_ns;
  }

  /// Ends the innermost work at `time_ns` at the latest.
  void cut(uint64_t time_ns) {
    if (depth() != 0) ends_.back() = std::min(ends_.back(), std::max(time_ns, last_ns_));
  }

  Event& append(EventKind kind, uint64_t time_ns, uint32_t region) {
    last_ns_ = time_ns;
    Event& event = events_.emplace_back();
    event.time_ns = time_ns;
    event.kind = kind;
    event.region = region;
    event.peer = -1;
    event.weight = 1;
    return event;
  }

  bool is_full() const { return events_.size() >= kBatch; }
  Status flush() {
    if (events_.empty()) return {};
    outcome_->event_count += events_.size();
    Status status = sink_(events_);
    events_.clear();
    on_flushed();
    return status;
  }

  /// Appends the end of the innermost work.
  virtual void append_end(uint64_t time_ns) = 0;
  virtual void on_flushed() {}

 private:
  size_t depth() const { return ends_.size(); }
  void leave() {
    const uint64_t end_ns = std::max(ends_.back(), last_ns_);
    ends_.pop_back();
    append_end(end_ns);
  }

  Outcome* outcome_;
  const Sink& sink_;
  std::vector<Event> events_;
  std::vector<uint64_t> ends_;  ///< of open work
  uint64_t last_ns_ = 0;
};

}  // namespace aon::writers
