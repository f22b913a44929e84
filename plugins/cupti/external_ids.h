/// External correlation ids beside the calls that they were given to. CUPTI promises their records
/// before that of the call, one for each kind, of the id that was pushed last; but buffers come in
/// any order. So an id waits for records of its call, which may be two: of the runtime, and of the
/// driver inside of it. One that comes behind them is told at once (Drain::take_external_id).
/// Thread: one.   Cost: 224 KiB, touched where ids are pushed; some ns.
#pragma once

#include <aon/external_id.h>

#include <cstdint>

namespace aon::cupti {

struct ExternalId {
  ExternalKind kind;
  uint32_t correlation;  ///< of its call
  uint64_t id;
};

class ExternalIds {
 public:
  static constexpr uint32_t kEntries = 4096;        ///< calls; a younger one takes the place
  static constexpr uint32_t kMostCalls = 1u << 22;  ///< behind an id: later ones have its number
                                                    ///< again, as 32 bits end

  /// Nobody has pushed one.
  bool is_empty() const { return is_empty_; }

  /// False: it is there already. Another of the same kind and call takes its place.
  bool add(const ExternalId& id) {
    is_empty_ = false;
    Entry& entry = entries_[id.correlation % kEntries];
    if (!is_of(entry, id.correlation)) begin(&entry, id.correlation);
    const uint32_t at = static_cast<uint32_t>(id.kind) - 1;
    const bool is_known = (entry.kinds >> at & 1) != 0;
    if (is_known && entry.ids[at] == id.id) return false;
    entry.kinds |= 1u << at;
    entry.ids[at] = id.id;
    ++entry.waiting_count;
    ++waiting_count_;
    return true;
  }

  /// A record of the call is there: `tell` gets each of its ids.
  template <class Tell>
  void join(uint32_t correlation, Tell tell) {
    ++call_count_;
    Entry& entry = entries_[correlation % kEntries];
    if (!is_of(entry, correlation)) return;
    note_joined(correlation);
    for (uint32_t at = 0; at < kKinds; ++at) {
      if ((entry.kinds >> at & 1) != 0)
        tell(ExternalId{static_cast<ExternalKind>(at + 1), correlation, entry.ids[at]});
    }
  }
  /// None of the call's ids waits.
  void note_joined(uint32_t correlation) {
    Entry& entry = entries_[correlation % kEntries];
    waiting_count_ -= entry.waiting_count;
    entry.waiting_count = 0;
  }

  /// Ids that waited until their place was taken, and, with `is_end`, those that wait.
  uint64_t alone_count(bool is_end) const { return lost_count_ + (is_end ? waiting_count_ : 0); }

 private:
  static constexpr uint32_t kKinds = kExternalKindCount - 1;
  struct Entry {
    uint32_t correlation;  ///< 0: none
    uint32_t kinds;        ///< bits
    uint32_t waiting_count;
    uint32_t call_count;  ///< when it was made
    uint64_t ids[kKinds];
  };

  bool is_of(const Entry& entry, uint32_t correlation) const {
    return entry.correlation == correlation && correlation != 0 &&
           call_count_ - entry.call_count < kMostCalls;
  }
  void begin(Entry* entry, uint32_t correlation) {
    waiting_count_ -= entry->waiting_count;
    lost_count_ += entry->waiting_count;
    *entry = {};
    entry->correlation = correlation;
    entry->call_count = call_count_;
  }

  bool is_empty_ = true;
  uint32_t call_count_ = 0;  ///< since the first id
  uint64_t lost_count_ = 0;
  uint64_t waiting_count_ = 0;
  Entry entries_[kEntries] = {};
};

}  // namespace aon::cupti
