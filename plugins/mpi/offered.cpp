#include "mpi/offered.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <utility>

#include "mpi/generated/sites.h"
#include "mpi/loaded.h"

namespace aon::mpi {
namespace {

const char g_token = 0;                        ///< lies in this library
void* g_wrappers[kOptionalCount];              ///< written before their symbols become indirect
pid_t g_process;                               ///< that made them indirect
std::atomic<bool> g_is_bound[kOptionalCount];  ///< indirect ones: a reference has ours
std::atomic<bool> g_is_taken_out;              ///< what the known library lacks
std::atomic_flag g_is_written;                 ///< our table, by another thread

const char* name_of(uint32_t optional) { return kFunctionNames[kOptionalFunctions[optional]]; }

Presence presence(uint32_t optional) {
  const bool is_child = g_process != 0 && getpid() != g_process;
  return is_child ? presence_in_child(name_of(optional)) : presence_of(name_of(optional));
}

using Resolver = void* (*)();

void* answer(uint32_t optional, const void* caller);

/// What ld.so calls, under its locks, to bind a reference to the function; and dlsym().
template <size_t optional>
void* resolve() {
  return answer(optional, __builtin_return_address(0));
}

template <size_t... optional>
constexpr std::array<Resolver, kOptionalCount> make_resolvers(std::index_sequence<optional...>) {
  return {resolve<optional>...};
}

constexpr auto kResolvers = make_resolvers(std::make_index_sequence<kOptionalCount>());

/// Entries of our symbol table, to be written. Other threads may look names up in it meanwhile.
class Entries {
 public:
  Entries() : file_(file_of(&g_token)) {}

  void add(uint32_t optional) {
    const ElfW(Sym)* entry = definition_in(file_, name_of(optional));
    if (entry == nullptr) return;
    entries_[optional] = const_cast<ElfW(Sym)*>(entry);
    const auto at = reinterpret_cast<uintptr_t>(entry);
    if (at < start_) start_ = at;
    if (at + sizeof *entry > end_) end_ = at + sizeof *entry;
  }

  /// Not those that loaded files refer to: what one looks at may be bound, what it calls not yet.
  void leave_referenced() {
    visit_references(
        [](const char* name, void* context) {
          Entries& all = *static_cast<Entries*>(context);
          const ElfW(Sym)* entry = definition_in(all.file_, name);
          for (ElfW(Sym) * &added : all.entries_) {
            if (entry != nullptr && added == entry) added = nullptr;
          }
        },
        this);
  }

  /// False: they stay as they are. Pages that hold code as well, as linkers once made them, do.
  bool unlock() {
    if (start_ >= end_) return false;
    if (g_process == 0 && is_executable(reinterpret_cast<void*>(start_))) return false;
    return protect(PROT_READ | PROT_WRITE);
  }
  void lock() { protect(PROT_READ); }

  /// Null: not added.
  ElfW(Sym) * operator[](uint32_t optional) const { return entries_[optional]; }

  void* address_of(const ElfW(Sym) & entry) const {
    return reinterpret_cast<void*>(file_.base + entry.st_value);
  }
  ElfW(Addr) value_of(Resolver resolver) const {
    return reinterpret_cast<ElfW(Addr)>(resolver) - file_.base;
  }

 private:
  bool protect(int protection) const {
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const uintptr_t start = start_ & ~(page - 1);
    return mprotect(reinterpret_cast<void*>(start), end_ - start, protection) == 0;
  }

  LoadedFile file_;
  ElfW(Sym) * entries_[kOptionalCount] = {};
  uintptr_t start_ = ~uintptr_t{0};
  uintptr_t end_ = 0;
};

/// Nobody finds the entry by a name that begins one character later. Who has found it already
/// reads the rest of it, so that stays.
void hide(ElfW(Sym) * entry) {
  // seq_cst: stands before and behind the other stores; ld.so in other threads goes by no order
  std::atomic_ref(entry->st_name).fetch_add(1, std::memory_order_seq_cst);
}
void show(ElfW(Sym) * entry) {
  // seq_cst: as hide()
  std::atomic_ref(entry->st_name).fetch_sub(1, std::memory_order_seq_cst);
}

void make_indirect(const Entries& entries, uint32_t optional) {
  ElfW(Sym)* entry = entries[optional];
  g_wrappers[optional] = entries.address_of(*entry);
  hide(entry);  // who looks it up just now finds either none or a whole one
  entry->st_value = entries.value_of(kResolvers[optional]);
  entry->st_info = ELF64_ST_INFO(ELF64_ST_BIND(entry->st_info), STT_GNU_IFUNC);
  show(entry);
}

/// When ld.so has loaded us, and all that the program is linked to. Most of the cost are some 20
/// pages that become the process's own.
[[gnu::constructor]] void ask_when_bound() {
  if (presence_of("MPI_Init") != Presence::kNoLibrary || !may_load_libraries()) return;
  Entries entries;
  for (uint32_t i = 0; i < kOptionalCount; ++i) entries.add(i);
  entries.leave_referenced();
  if (!entries.unlock()) return;
  g_process = getpid();
  for (uint32_t i = 0; i < kOptionalCount; ++i) {
    if (entries[i] != nullptr) make_indirect(entries, i);
  }
  entries.lock();
}

/// Those that are hidden already are not found again. Another thread that is about it is not waited
/// for: we may be under ld.so's locks.
void hide_what_is_lacking() {
  if (g_is_written.test_and_set(std::memory_order_acquire)) return;  // pairs with mpi:offered
  Entries entries;
  for (uint32_t i = 0; i < kOptionalCount; ++i) {
    const bool may_be_called = g_process != 0 && (g_wrappers[i] == nullptr || g_is_bound[i]);
    if (!may_be_called && presence(i) == Presence::kLacking) entries.add(i);
  }
  if (g_process == 0) entries.leave_referenced();
  if (entries.unlock()) {
    for (uint32_t i = 0; i < kOptionalCount; ++i) {
      if (entries[i] != nullptr) hide(entries[i]);
    }
    entries.lock();
  }
  g_is_written.clear(std::memory_order_release);  // pairs with mpi:offered
}

/// Null is for references only: where dlsym() returns it dlerror() says nothing, and Python's
/// ctypes reads what that says. From the next one on dlsym() finds no such name.
void* answer(uint32_t optional, const void* caller) {
  const bool is_lacking = presence(optional) == Presence::kLacking;
  const bool is_reference = is_of_the_loader(caller);
  if (!is_lacking) {
    if (is_reference) g_is_bound[optional].store(true, std::memory_order_relaxed);
    return g_wrappers[optional];
  }
  const int saved_errno = errno;
  hide_what_is_lacking();
  errno = saved_errno;
  return is_reference && !g_is_bound[optional] ? nullptr : g_wrappers[optional];
}

}  // namespace

void offer_what_the_library_has() noexcept {
  if (!g_is_taken_out.exchange(true)) hide_what_is_lacking();
}

}  // namespace aon::mpi
