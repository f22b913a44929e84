#include "nccl/remarks.h"

#include <aon/process_mutex.h>
#include <aon/writer.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

namespace aon::nccl {
namespace {

struct Remark {
  ProviderState state;
  char reason[kMaxReasonBytes + 1];
  char remedy[kMaxRemedyBytes + 1];
};

constinit ProcessMutex g_mutex;
Remark g_remarks[kTopicCount] AON_GUARDED_BY(g_mutex);
pid_t g_told_process AON_GUARDED_BY(g_mutex);

/// A child of fork() knows what its parent knew of files and the environment, and counts anew.
/// It has one thread.
void begin_child() AON_NO_THREAD_SAFETY_ANALYSIS {
  g_mutex.begin_child();
  g_remarks[static_cast<int>(Topic::kLosses)] = {};
}
[[gnu::constructor]] void watch_forks() { pthread_atfork(nullptr, nullptr, begin_child); }

/// Behind "; ", where it is not there already. What has no room is cut off.
void add(char* text, size_t max_bytes, const char* more) {
  if (more[0] == '\0' || strstr(text, more) != nullptr) return;
  const size_t length = strlen(text);
  snprintf(text + length, max_bytes + 1 - length, "%s%s", length != 0 ? "; " : "", more);
}

void tell() AON_REQUIRES(g_mutex) {
  char reason[kMaxReasonBytes + 1] = "";
  char remedy[kMaxRemedyBytes + 1] = "";
  ProviderDefinition provider = {};
  provider.state = ProviderState::kOn;
  for (const Remark& one : g_remarks) {
    if (one.reason[0] == '\0') continue;
    if (provider.state != ProviderState::kOff) provider.state = one.state;
    add(reason, kMaxReasonBytes, one.reason);
    add(remedy, kMaxRemedyBytes, one.remedy);
  }
  char text[kMaxReasonBytes + kMaxRemedyBytes + 16];
  const int bytes = snprintf(text, sizeof text, "nccl%c%s%c%s", '\0', reason, '\0', remedy);
  aon_define(static_cast<uint32_t>(DefinitionType::kProvider), &provider, sizeof provider, text,
             static_cast<uint32_t>(bytes) + 1);
}

}  // namespace

void remark(Topic topic, ProviderState state, const char* reason, const char* remedy) {
  Remark said = {};
  said.state = state;
  snprintf(said.reason, sizeof said.reason, "%s", reason);
  snprintf(said.remedy, sizeof said.remedy, "%s", remedy);
  const pid_t process = getpid();
  // A signal handler that calls exit() may have interrupted who has it.
  timespec end = {};
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 1;
  if (!g_mutex.lock_until(end)) return;
  Remark& known = g_remarks[static_cast<int>(topic)];
  const bool is_new =
      strcmp(known.reason, said.reason) != 0 || strcmp(known.remedy, said.remedy) != 0;
  if (is_new || g_told_process != process) {
    known = said;
    g_told_process = process;
    tell();
  }
  g_mutex.unlock();
}

}  // namespace aon::nccl
