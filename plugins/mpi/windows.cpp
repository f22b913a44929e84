#include "mpi/windows.h"

#include <string.h>

#include <new>

#include "mpi/groups.h"
#include "mpi/handle_map.h"
#include "mpi/lock.h"
#include "mpi/memory.h"
#include "mpi/state.h"

namespace aon::mpi {
namespace {

constexpr uint32_t kArenaCount = 64;
constexpr uint64_t kGroupMark = uint64_t{1} << 63;  ///< in every key of g_groups: none is 0 or 1

SpinLock g_lock;            // around every change
SharedHandleMap g_windows;  // handle -> Window*; read without the lock
SharedHandleMap g_groups;   // hash of the members -> id; read without the lock
uint32_t g_last_window AON_GUARDED_BY(g_lock);
uint32_t g_last_group AON_GUARDED_BY(g_lock);
Window* g_arena AON_GUARDED_BY(g_lock);
uint32_t g_arena_left AON_GUARDED_BY(g_lock);
Window* g_free AON_GUARDED_BY(g_lock);
constinit Window g_none{};  // id 0

Window* new_window() AON_REQUIRES(g_lock) {
  if (Window* window = g_free; window != nullptr) {
    g_free = window->next_free;
    return new (window) Window{};
  }
  if (g_arena_left == 0) {
    g_arena = static_cast<Window*>(map_bytes(sizeof(Window) * kArenaCount));
    if (g_arena == nullptr) return nullptr;
    g_arena_left = kArenaCount;
  }
  --g_arena_left;
  return g_arena++;
}

/// A group's members on their way into its hash and, if there is room, its definition.
struct Members {
  uint64_t hash;
  uint32_t count;
  uint32_t ranks[kMaxGroupMembers];
};

void add_members(void* data, const int* ranks, int count) {
  Members& members = *static_cast<Members*>(data);
  for (int i = 0; i < count; ++i) {
    const auto rank = static_cast<uint32_t>(ranks[i]);
    members.hash = mix(members.hash, rank);
    if (members.count < kMaxGroupMembers) members.ranks[members.count] = rank;
    ++members.count;
  }
}

uint32_t id_of(void* value) { return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(value)); }

/// Defines a group that was not seen before; 0 when there is no room.
uint32_t define_group(uint64_t key, const Members& members) AON_REQUIRES(g_lock) {
  const uint32_t id = g_last_group + 1;
  const GroupDefinition definition = {id, members.count};
  if (!aon_define(static_cast<uint32_t>(DefinitionType::kGroup), &definition, sizeof definition,
                  reinterpret_cast<const char*>(members.ranks),
                  members.count * static_cast<uint32_t>(sizeof members.ranks[0]))) {
    return 0;
  }
  if (!g_groups.put(key, reinterpret_cast<void*>(uintptr_t{id}))) return 0;
  g_last_group = id;
  return id;
}

}  // namespace

Window* find_window(Handle handle) noexcept {
  void* found = g_windows.find(canonical(handle));
  return found != nullptr ? static_cast<Window*>(found) : &g_none;
}

Window* add_window(const Communicator& c, uint32_t number, Handle handle,
                   WindowFlavour flavour) noexcept {
  if (c.id == 0 || handle == abi.window_null || !mpi_is_usable()) return &g_none;
  Guard guard(&g_lock);
  Window* window = new_window();
  if (window == nullptr || !g_windows.put(canonical(handle), window)) return &g_none;
  window->id = ++g_last_window;
  window->flavour = flavour;
  WindowDefinition definition = {};
  definition.identity =
      mix(mix(c.identity, number), static_cast<uint32_t>(DefinitionType::kWindow));
  definition.id = window->id;
  definition.communicator_id = c.id;
  definition.flavour = flavour;
  aon_define(static_cast<uint32_t>(DefinitionType::kWindow), &definition, sizeof definition, "", 1);
  return window;
}

void name_window(const Window& window, const char* name) {
  if (window.id == 0 || name == nullptr) return;
  const IdDefinition definition = {window.id};
  aon_define(static_cast<uint32_t>(DefinitionType::kWindowName), &definition, sizeof definition,
             name, static_cast<uint32_t>(strlen(name)) + 1);
}

Window* take_window(Handle handle) noexcept {
  Guard guard(&g_lock);
  auto* window = static_cast<Window*>(g_windows.take(canonical(handle)));
  return window != nullptr ? window : &g_none;
}

void end_window(Window* taken, Handle handle, int result) noexcept {
  if (taken == &g_none) return;
  Guard guard(&g_lock);
  if (result != kSuccess) {
    g_windows.put(canonical(handle), taken);
    return;
  }
  const IdDefinition definition = {taken->id};
  aon_define(static_cast<uint32_t>(DefinitionType::kWindowFree), &definition, sizeof definition,
             nullptr, 0);
  taken->next_free = g_free;
  g_free = taken;
}

uint32_t group_id(Handle group) noexcept {
  Members members;
  members.hash = members.count = 0;
  // The program's error handler must not hear of our question.
  if (group == 0 || canonical(group) == abi.group_null || !mpi_is_usable()) return 0;
  int count = 0;  // ranks are translated one by one: not in vain
  if (queries.group_size(group, &count) != kSuccess ||
      static_cast<uint32_t>(count) > kMaxGroupMembers)
    return 0;
  if (!visit_world_ranks(group, add_members, &members)) return 0;
  const uint64_t key = mix(members.hash, members.count) | kGroupMark;
  if (void* found = g_groups.find(key)) return id_of(found);
  Guard guard(&g_lock);
  if (void* found = g_groups.find(key)) return id_of(found);
  return define_group(key, members);
}

void record_tested(const Site& site, Handle window, int result) noexcept {
  Writer* w = writer();
  if (w->slot == nullptr) return;  // the call ended in a fork()ed child
  OpenCall call = begin_call(w, site.id);
  const Window* tested = find_window(window);
  finish_window_call(call, RmaOperation::kTest, *tested, kAnyPeer,
                     tested->exposure_group.load(std::memory_order_relaxed), result);
}

}  // namespace aon::mpi
