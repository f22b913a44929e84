#include "mpi/lacking.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mpi/generated/sites.h"

namespace aon::mpi {
namespace {

const char g_token = 0;  ///< lies in this library

/// Written past the protection of a page, which ld.so in another thread may be about to change. By
/// system calls: the program's own open() may look a name up, under ld.so's lock.
class Memory {
 public:
  Memory()
      : descriptor_(
            static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDWR | O_CLOEXEC))) {
  }
  ~Memory() {
    if (descriptor_ >= 0) syscall(SYS_close, descriptor_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void clear(const ElfW(Addr) * place) const {
    const ElfW(Addr) nothing = 0;
    if (descriptor_ >= 0)
      syscall(SYS_pwrite64, descriptor_, &nothing, sizeof nothing,
              static_cast<off_t>(reinterpret_cast<ElfW(Addr)>(place)));
  }

 private:
  int descriptor_;
};

/// Our symbols of the functions that nobody else has; null: of all others.
struct Lacking {
  Memory memory;
  ElfW(Addr) base = 0;
  const ElfW(Sym) * symbols[kFunctionCount] = {};
};

/// Whether the reference is bound to what it must not find.
bool is_ours(const Lacking& lacking, const char* name, ElfW(Addr) bound) {
  for (uint32_t i = 0; i < kFunctionCount; ++i) {
    const ElfW(Sym)* symbol = lacking.symbols[i];
    if (symbol != nullptr && lacking.base + symbol->st_value == bound) {
      return strcmp(kFunctionNames[i], name) == 0;
    }
  }
  return false;
}

void clear_reference(void* data, const char* name, const ElfW(Addr) * place) {
  const Lacking& lacking = *static_cast<const Lacking*>(data);
  if (strncmp(name, "MPI", 3) == 0 && is_ours(lacking, name, *place)) lacking.memory.clear(place);
}

}  // namespace

void hide_lacking_functions(const LoadedFile& library, void* (*find)(const char* name)) noexcept {
  const LoadedFile own = file_of(&g_token);
  Lacking lacking;
  lacking.base = own.base;
  for (uint32_t i = 0; i < kFunctionCount; ++i) {
    const char* name = kFunctionNames[i];
    const bool is_there = symbol_in(library, name) != nullptr || find(name) != nullptr;
    if (!is_there) lacking.symbols[i] = definition_in(own, name);
  }
  visit_weak_references(clear_reference, &lacking);
  for (const ElfW(Sym) * symbol : lacking.symbols) {
    if (symbol != nullptr) lacking.memory.clear(&symbol->st_value);
  }
}

}  // namespace aon::mpi
