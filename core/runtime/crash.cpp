// The note in front of handlers that print a stack: aon/crash.h.
#include <aon/crash.h>
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "core/runtime/process.h"

#pragma weak dladdr  // aon/old_libc.h

namespace aon::runtime {
namespace {

using Handler = void (*)(int, siginfo_t*, void*);

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
/// Parts of the names of libraries whose handlers print and then let the program die.
constexpr const char* kPrinters[] = {"libopen-pal", "libucs", "libgfortran"};

struct Range {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  uintptr_t base = 0;
};

// Written by aon_follow_crashes; a range that is written while a thread dies in it is not found.
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

/// A signal that somebody has sent, or memory that has failed, is no fault of the code it hits.
bool is_fault(int number, const siginfo_t* info) {
  const bool is_bad_memory =
      number == SIGBUS && (info->si_code == BUS_MCEERR_AR || info->si_code == BUS_MCEERR_AO);
  return info->si_code > 0 && !is_bad_memory;
}

/// Stores a word, nothing else: the program is dying, and what follows is the library's.
void note_and_follow(int number, siginfo_t* info, void* context) {
  const uintptr_t at = instruction_of(context);
  for (uint32_t library = 0; library < kOwnLibraryCount; ++library) {
    const Range& range = g_ranges[library];
    Process* p = process();
    if (at < range.begin || at >= range.end || p == nullptr || p->ring == nullptr) continue;
    if (!is_fault(number, info)) continue;
    p->ring->crash_place.store(crash_place(library, at - range.base), std::memory_order_relaxed);
  }
  g_followed[number](number, info, context);  // a jump: its stack shows no frame of ours
}

bool is_printer(const struct sigaction& action) {
  Dl_info owner;
  if (dladdr == nullptr || dladdr(reinterpret_cast<void*>(action.sa_sigaction), &owner) == 0)
    return false;
  const char* name = file_name(owner.dli_fname != nullptr ? owner.dli_fname : "");
  for (const char* printer : kPrinters) {
    if (strstr(name, printer) != nullptr) return true;
  }
  return false;
}

}  // namespace
}  // namespace aon::runtime

namespace aon {
extern "C" {

void aon_follow_crashes() noexcept {
  using namespace runtime;
  const Process* p = process();
  if (p == nullptr || p->ring == nullptr) return;  // nothing is recorded: nothing is changed
  dl_iterate_phdr(note_range, nullptr);
  for (const int number : kSignals) {
    struct sigaction action;
    if (sigaction(number, nullptr, &action) != 0 || action.sa_sigaction == note_and_follow ||
        !is_printer(action)) {
      continue;
    }
    g_followed[number] = action.sa_sigaction;
    action.sa_sigaction = note_and_follow;
    action.sa_flags |= SA_SIGINFO;  // one argument more than a plain handler looks at
    sigaction(number, &action, nullptr);
  }
}
}
}  // namespace aon
