/// The stacks that timers in the processes noted (core/ring/stack_ring.h), for the provider that
/// makes samples of them. What a ring holds when its process has ended is kept until forget().
/// Thread: add() and remove() the drain thread's, the rest the housekeeping thread's; one lock.
/// Cost: a few loads per used slot where no timer runs.
#pragma once

#include <aon/mutex.h>
#include <aon/provider.h>
#include <aon/ring.h>

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

namespace aon::agent {

class StackTable {
 public:
  void add(uint32_t process, void* base, const RingGeometry& geometry);
  /// Before the ring is unmapped: takes what it holds.
  void remove(uint32_t process);
  void forget(uint32_t process);

  /// As aon_core_api::take_stack.
  bool take(uint32_t process, aon_noted_stack* stack);
  void set_rate(uint32_t process, uint32_t rate_hz);

 private:
  struct Entry {
    char* base = nullptr;  ///< null: the ring is gone
    bool is_forgotten = false;
    RingGeometry geometry;
    uint32_t next_slot = 0;
    std::map<uint32_t, uint64_t> lost_counts;  ///< told so far, by slot
    std::deque<aon_noted_stack> left;          ///< of a ring that is gone
  };
  static bool take_live(Entry* entry, aon_noted_stack* stack);
  static bool take_slot(Entry* entry, uint32_t slot, aon_noted_stack* stack);

  Mutex m_;
  std::map<uint32_t, Entry> entries_ AON_GUARDED_BY(m_);
};

}  // namespace aon::agent
