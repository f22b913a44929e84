// The note in front of MPI's handlers of faults: aon/crash.h.
#include <aon/crash.h>
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "core/runtime/process.h"

namespace aon::runtime {
namespace {

using Handler = void (*)(int, siginfo_t*, void*);

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};

struct Range {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  uintptr_t base = 0;
};

// Written before a handler is installed, constant afterwards.
Range g_ranges[kOwnLibraryCount];
Handler g_followed[NSIG];

const char* file_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

int note_range(dl_phdr_info* info, size_t, void*) {
  const char* name = file_name(info->dlpi_name != nullptr ? info->dlpi_name : "");
  for (uint32_t library = 0; library < kOwnLibraryCount; ++library) {
    if (strcmp(name, kOwnLibraries[library]) != 0) continue;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const ElfW(Phdr)& part = info->dlpi_phdr[i];
      if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
      const uintptr_t begin = info->dlpi_addr + part.p_vaddr;
      g_ranges[library] = {begin, begin + part.p_memsz, info->dlpi_addr};
    }
  }
  return 0;
}

uintptr_t instruction_of(const void* context) {
  const auto* machine = static_cast<const ucontext_t*>(context);
#if defined(__x86_64__)
  return static_cast<uintptr_t>(machine->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return machine->uc_mcontext.pc;
#else
  return 0;
#endif
}

/// Stores a word, nothing else: the program is dying, and what follows is MPI's.
void note_and_follow(int number, siginfo_t* info, void* context) {
  const uintptr_t at = instruction_of(context);
  for (uint32_t library = 0; library < kOwnLibraryCount; ++library) {
    const Range& range = g_ranges[library];
    Process* p = process();
    if (at < range.begin || at >= range.end || p == nullptr || p->ring == nullptr) continue;
    p->ring->crash_place.store(crash_place(library, at - range.base), std::memory_order_relaxed);
  }
  g_followed[number](number, info, context);  // a jump: MPI's stack shows no frame of ours
}

}  // namespace
}  // namespace aon::runtime

namespace aon {
extern "C" {

void aon_follow_crashes(const char* library) noexcept {
  using namespace runtime;
  dl_iterate_phdr(note_range, nullptr);
  for (const int number : kSignals) {
    struct sigaction action;
    Dl_info owner;
    if (sigaction(number, nullptr, &action) != 0 || (action.sa_flags & SA_SIGINFO) == 0 ||
        action.sa_sigaction == note_and_follow ||
        dladdr(reinterpret_cast<void*>(action.sa_sigaction), &owner) == 0 ||
        owner.dli_fname == nullptr || strstr(file_name(owner.dli_fname), library) == nullptr) {
      continue;
    }
    g_followed[number] = action.sa_sigaction;
    action.sa_sigaction = note_and_follow;
    sigaction(number, &action, nullptr);
  }
}
}
}  // namespace aon
