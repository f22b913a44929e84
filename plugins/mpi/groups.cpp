#include "mpi/groups.h"

#include "mpi/library.h"

namespace aon::mpi {
namespace {

constexpr int kBatch = 256;
constexpr uint32_t kCountSlots = 1024;  ///< different member lists; a power of two

/// A group handle that is freed with its scope.
class Group {
 public:
  Group(Handle communicator, Side side) {
    const auto ask = side == Side::kOwn ? queries.comm_group : queries.comm_remote_group;
    is_valid_ = ask != nullptr && ask(communicator, &memory_) == kSuccess;
  }
  ~Group() {
    if (is_valid_) queries.group_free(&memory_);
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  bool is_valid() const { return is_valid_; }
  Handle handle() const { return load_handle(&memory_, 0); }

 private:
  uint64_t memory_ = 0;
  bool is_valid_;
};

int32_t world_rank(int32_t translated) { return translated >= 0 ? translated : -1; }

struct MembersCount {
  uint64_t members;
  uint32_t count;
};
MembersCount g_counts[kCountSlots];

}  // namespace

int32_t first_world_rank(Handle communicator, Side side) {
  const Group group(communicator, side);
  const Group world_group(abi.comm_world, Side::kOwn);
  if (!group.is_valid() || !world_group.is_valid()) return -1;
  const int zero = 0;
  int translated = -1;
  if (queries.group_translate_ranks(group.handle(), 1, &zero, world_group.handle(), &translated) !=
      kSuccess) {
    return -1;
  }
  return world_rank(translated);
}

uint64_t hash_members(Handle communicator, Side side) {
  const Group group(communicator, side);
  const Group world_group(abi.comm_world, Side::kOwn);
  int member_count = 0;
  if (!group.is_valid() || !world_group.is_valid()) return 0;
  queries.group_size(group.handle(), &member_count);
  uint64_t hash = static_cast<uint64_t>(member_count);
  for (int first = 0; first < member_count; first += kBatch) {
    const int count = member_count - first < kBatch ? member_count - first : kBatch;
    int ranks[kBatch];
    int translated[kBatch];
    for (int i = 0; i < count; ++i) ranks[i] = first + i;
    if (queries.group_translate_ranks(group.handle(), count, ranks, world_group.handle(),
                                      translated) != kSuccess) {
      return 0;
    }
    for (int i = 0; i < count; ++i) hash = mix(hash, static_cast<uint32_t>(translated[i]));
  }
  return hash;
}

uint32_t count_members(uint64_t members) {
  uint32_t at = static_cast<uint32_t>(members) & (kCountSlots - 1);
  for (uint32_t tries = 0; tries < kCountSlots; ++tries, at = (at + 1) & (kCountSlots - 1)) {
    if (g_counts[at].count != 0 && g_counts[at].members != members) continue;
    g_counts[at].members = members;
    return ++g_counts[at].count;
  }
  return 0;
}

}  // namespace aon::mpi
