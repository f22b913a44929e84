/// How processes wake the agent of their node: one page, a sealed memfd that the agent makes and
/// all processes of the launch map. A burst fills a ring in less time than the agent sleeps.
///
///     agent      before it sleeps             armed.store(1)
///     process    takes a chunk from           armed.exchange(0); if that was 1:
///                RingHeader::wake_chunk on    rings.fetch_add(1), futex(FUTEX_WAKE, rings)
///     agent      a thread in futex(FUTEX_WAIT, rings) makes the drain thread look at all rings
///
/// It carries no data: who misses it, or rings for nothing, changes when records are taken, not
/// which.
/// Cost: one system call for all processes in a sleep of the agent, and only in bursts.
/// Depends on nothing.
#pragma once

#include <atomic>
#include <cstdint>

namespace aon {

constexpr uint32_t kBellBytes = 4096;

struct Bell {
  std::atomic<uint32_t> armed;  ///< 1: the agent sleeps
  std::atomic<uint32_t> rings;  ///< how often it was woken
};
static_assert(sizeof(Bell) == 8 && std::atomic<uint32_t>::is_always_lock_free);

}  // namespace aon
