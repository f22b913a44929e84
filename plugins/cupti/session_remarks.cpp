#include "cupti/session_remarks.h"

#include <stdio.h>

#include "cupti/driver.h"
#include "cupti/state.h"

namespace aon::cupti {

void tell_library(const CuptiLibrary& library, const char* missing) {
  if (missing != nullptr) {
    const char* path = library.handle != nullptr ? path_of_library(library.handle) : "";
    char reason[320];
    snprintf(reason, sizeof reason, "%s%s%.200s", missing, *path != '\0' ? ": " : "", path);
    tell(Remark::kStart, ProviderState::kOff, reason,
         "put CUDA's folder extras/CUPTI/lib64 into LD_LIBRARY_PATH, or the path of libcupti into "
         "AON_CUPTI_LIB");
  }
  if (library.remark[0] == '\0') return;
  tell(Remark::kLibrary, library.is_path_wrong ? ProviderState::kDegraded : ProviderState::kOn,
       library.remark, library.is_path_wrong ? kCuptiPathRemedy : "");
}

void tell_settings(const Settings& settings) {
  if (settings.remark[0] == '\0') return;
  tell(Remark::kSettings, ProviderState::kDegraded, settings.remark,
       "docs/gpu-cupti.md has the values");
}

void tell_owner(ProviderState state, const char* owner) {
  char reason[256];
  snprintf(reason, sizeof reason, "another client holds CUPTI%s%.128s",
           owner[0] != '\0' ? ": " : "", owner);
  tell(Remark::kStart, state, reason,
       "run without the other tool; --cupti-mode off where it is wanted");
}

void tell_unread(bool is_unread) {
  if (!is_unread) {
    tell(Remark::kUnread, ProviderState::kOn, "", "");
    return;
  }
  tell(Remark::kUnread, ProviderState::kDegraded,
       "the program was not seen to end by exit(): work of its last half second is missing (more, "
       "where AON's thread stood still), and what the device had not finished, with up to half a "
       "second before it",
       "");
}

void tell_skipped_flush() {
  if (!shared().has_skipped_flush.exchange(false, std::memory_order_relaxed)) return;
  tell(Remark::kFlush, ProviderState::kDegraded,
       "a flush took longer than 0.1 s, and another one was left out: records of a context that "
       "ended meanwhile may be missing",
       "");
}

void tell_skipped_release() {
  for (uint64_t devices = shared().releases.take_skipped(); devices != 0; devices &= devices - 1) {
    if (is_context_alive(__builtin_ctzll(devices))) continue;
    tell(Remark::kRelease, ProviderState::kDegraded,
         "a context ended within 0.5 s of another release of it: up to so much of its work is "
         "missing",
         "");
  }
}

void tell_version() {
  const Quirks& quirks = shared().quirks;
  if (!quirks.crashes_on_flush) return;
  const char* more =
      quirks.crashes_on_graphs
          ? ", and graphs are recorded node by node: as one they may crash it"
          : (quirks.lacks_device_waits ? ", and it does not tell of waiting for a device" : "");
  char reason[256];
  snprintf(reason, sizeof reason,
           "this version of CUPTI may crash when records are flushed (NVIDIA's notes)%s", more);
  tell(Remark::kVersion, quirks.lacks_device_waits ? ProviderState::kDegraded : ProviderState::kOn,
       reason, "CUDA 13.0.1");
}

}  // namespace aon::cupti
