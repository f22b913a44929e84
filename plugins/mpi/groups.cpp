#include "mpi/groups.h"

#include <stdlib.h>

#include <atomic>
#include <utility>

#include "mpi/library.h"
#include "mpi/lock.h"

namespace aon::mpi {
namespace {

constexpr int kBatch = 256;
constexpr uint32_t kCountTries = 64;  ///< places that a list may have

/// A group handle that is freed with its scope.
class Group {
 public:
  Group(Handle communicator, Side side) {
    const auto ask = side == Side::kOwn ? queries.comm_group : queries.comm_remote_group;
    is_valid_ = ask != nullptr && ask(communicator, &memory_) == kSuccess;
  }
  /// A group of somebody else, who frees it.
  explicit Group(Handle borrowed) : memory_(borrowed), is_valid_(true), is_own_(false) {}
  ~Group() {
    if (is_valid_ && is_own_) queries.group_free(&memory_);
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  bool is_valid() const { return is_valid_; }
  Handle handle() const { return load_handle(&memory_, 0); }

 private:
  uint64_t memory_ = 0;
  bool is_valid_;
  bool is_own_ = true;
};

SpinLock g_world_lock;
Handle g_session_world AON_GUARDED_BY(g_world_lock);  // other sessions' threads go on

/// While one lives, the group of the world is not given back. Always a lock: a session has a thread
/// level of its own.
class AON_SCOPED_CAPABILITY HeldWorld {
 public:
  HeldWorld() AON_ACQUIRE(g_world_lock) { g_world_lock.lock(); }
  ~HeldWorld() AON_RELEASE() { g_world_lock.unlock(); }
  HeldWorld(const HeldWorld&) = delete;
  HeldWorld& operator=(const HeldWorld&) = delete;
};

/// The group that world ranks count in.
Group group_of_world() AON_REQUIRES(g_world_lock) {
  return g_session_world != 0 ? Group(g_session_world) : Group(abi.comm_world, Side::kOwn);
}

int32_t world_rank(int32_t translated) { return translated >= 0 ? translated : -1; }

struct MembersCount {
  uint64_t members;
  uint32_t count;
};
MembersCount g_counts[kMaxMemberLists];

}  // namespace

bool change_session_world(Handle session, int* rank, int* process_count) {
  uint64_t group = 0;
  bool is_told = session != 0 && queries.group_from_session_pset != nullptr &&
                 queries.group_from_session_pset(session, "mpi://WORLD", &group) == kSuccess;
  uint64_t world = is_told ? load_handle(&group) : 0;
  is_told = is_told && queries.group_rank(world, rank) == kSuccess &&
            queries.group_size(world, process_count) == kSuccess;
  {
    const HeldWorld held;
    std::swap(world, g_session_world);
  }
  if (world != 0) queries.group_free(&world);
  return is_told;
}

int32_t first_world_rank(Handle communicator, Side side) {
  const Group group(communicator, side);
  const HeldWorld held;
  const Group world_group = group_of_world();
  if (!group.is_valid() || !world_group.is_valid()) return -1;
  const int zero = 0;
  int translated = -1;
  if (queries.group_translate_ranks(group.handle(), 1, &zero, world_group.handle(), &translated) !=
      kSuccess) {
    return -1;
  }
  return world_rank(translated);
}

uint64_t launch_identity() {
  // Read once, with the first communicator: the program may change its environment later.
  constexpr uint64_t kUnread = 1;
  static std::atomic<uint64_t> known{kUnread};
  uint64_t identity = known.load(std::memory_order_relaxed);
  if (identity != kUnread) return identity;
  const char* name = getenv("PMIX_NAMESPACE");
  identity = name != nullptr ? hash_text(name) & ~kUnread : 0;
  known.store(identity, std::memory_order_relaxed);
  return identity;
}

SideMembers hash_members(Handle communicator, Side side) {
  const Group group(communicator, side);
  const HeldWorld held;
  const Group world_group = group_of_world();
  int member_count = 0;
  if (!group.is_valid() || !world_group.is_valid()) return {};
  queries.group_size(group.handle(), &member_count);
  SideMembers members = {mix(launch_identity(), static_cast<uint64_t>(member_count)), false, false};
  for (int first = 0; first < member_count; first += kBatch) {
    const int count = member_count - first < kBatch ? member_count - first : kBatch;
    int ranks[kBatch];
    int translated[kBatch];
    for (int i = 0; i < count; ++i) ranks[i] = first + i;
    if (queries.group_translate_ranks(group.handle(), count, ranks, world_group.handle(),
                                      translated) != kSuccess) {
      return {};
    }
    for (int i = 0; i < count; ++i) {
      members.hash = mix(members.hash, static_cast<uint32_t>(translated[i]));
      (translated[i] < 0 ? members.are_of_elsewhere : members.are_of_world) = true;
    }
  }
  return members;
}

bool visit_world_ranks(Handle group, void (*visit)(void* data, const int* ranks, int count),
                       void* data) {
  const HeldWorld held;
  const Group world_group = group_of_world();
  int member_count = 0;
  if (!world_group.is_valid() || queries.group_size(group, &member_count) != kSuccess) return false;
  for (int first = 0; first < member_count; first += kBatch) {
    const int count = member_count - first < kBatch ? member_count - first : kBatch;
    int ranks[kBatch];
    int translated[kBatch];
    for (int i = 0; i < count; ++i) ranks[i] = first + i;
    if (queries.group_translate_ranks(group, count, ranks, world_group.handle(), translated) !=
        kSuccess) {
      return false;
    }
    for (int i = 0; i < count; ++i) {
      if (translated[i] < 0) return false;
    }
    visit(data, translated, count);
  }
  return true;
}

uint32_t count_members(uint64_t members) {
  uint32_t at = static_cast<uint32_t>(members) & (kMaxMemberLists - 1);
  for (uint32_t tries = 0; tries < kCountTries; ++tries, at = (at + 1) & (kMaxMemberLists - 1)) {
    if (g_counts[at].count != 0 && g_counts[at].members != members) continue;
    g_counts[at].members = members;
    return ++g_counts[at].count;
  }
  return 0;
}

}  // namespace aon::mpi
