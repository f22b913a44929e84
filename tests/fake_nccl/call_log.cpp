// A profiler plugin that keeps the calls it gets as a text (call_layouts.h), to be played again by
// `fake_nccl replay`. Under AON it is chained, so a run records itself and its calls:
//
//     AON_NCCL_CHAIN=PATH/libnccl-profiler-calls.so AON_NCCL_CALLS=FOLDER aon-run ...
//
// makes FOLDER/nccl-NODE-PID.calls. AON_NCCL_CALLS_MASK: what it asks NCCL for; 3910 if unset, all
// but groups, the proxy's work and the network's.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include "tests/fake_nccl/call_layouts.h"

namespace aon::test::nccl {
namespace {

constexpr int kMask = kColl | kP2p | kKernelCh | kGroupApi | kCollApi | kP2pApi | kKernelLaunch;

constexpr size_t kLineBytes = 4096;

/// What a handle or context points to.
struct Made {
  int number;
};

std::mutex mutex;
FILE* file;
std::map<const void*, Made*> made;  // by address: NCCL brings pointers of others, too
int made_count;
std::map<long, int> threads;
uint64_t first_ns;

uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

std::string number_of(const void* pointer) {
  if (pointer == nullptr) return "0";
  const auto found = made.find(pointer);
  return found == made.end() ? "?" : std::to_string(found->second->number);
}

Made* make() {
  auto* one = new Made{++made_count};
  made[one] = one;
  return one;
}

/// What all lines begin with. False: there is no file.
bool begin_line(int version) {
  if (first_ns == 0) {
    first_ns = now_ns();
    char node[64] = "";
    gethostname(node, sizeof node - 1);
    const char* folder = std::getenv("AON_NCCL_CALLS");
    const std::string name = std::string(folder != nullptr ? folder : ".") + "/nccl-" + node + "-" +
                             std::to_string(getpid()) + ".calls";
    file = std::fopen(name.c_str(), "we");
    if (file == nullptr) std::perror(name.c_str());
    if (file != nullptr) {
      std::setvbuf(file, nullptr, _IOLBF, kLineBytes);  // of a killed program each line is kept
      std::fprintf(file, "nccl-calls %d\n", version);
    }
  }
  if (file == nullptr) return false;
  const auto [thread, is_new] = threads.try_emplace(syscall(SYS_gettid), 0);
  if (is_new) thread->second = static_cast<int>(threads.size());
  std::fprintf(file, "%llu %d ", static_cast<unsigned long long>(now_ns() - first_ns),
               thread->second);
  return true;
}

void write_bytes(const unsigned char* bytes, size_t count) {
  for (size_t i = 0; i < count; ++i) std::fprintf(file, "%02x", bytes[i]);
}

int init(int version, void** context, int* mask, uint64_t id, const char* name, int nodes,
         int rank_count, int rank) {
  const std::lock_guard<std::mutex> lock(mutex);
  const char* asked = std::getenv("AON_NCCL_CALLS_MASK");
  *mask = asked != nullptr ? std::atoi(asked) : kMask;
  Made* one = make();
  *context = one;
  if (!begin_line(version)) return 0;
  std::fprintf(file, "init %d %llx %d %d %d %d %s\n", one->number,
               static_cast<unsigned long long>(id), *mask, nodes, rank_count, rank,
               name != nullptr && *name != '\0' ? name : "-");
  return 0;
}

template <int kVersion>
int init_v1(void** context, int* mask) {
  return init(kVersion, context, mask, 0, nullptr, 0, 0, 0);
}

int init_v4(void** context, int* mask, const char* name, uint64_t id, int nodes, int rank_count,
            int rank, void*) {
  return init(4, context, mask, id, name, nodes, rank_count, rank);
}

template <int kVersion>
int init_v5(void** context, uint64_t id, int* mask, const char* name, int nodes, int rank_count,
            int rank, void*) {
  return init(kVersion, context, mask, id, name, nodes, rank_count, rank);
}

template <int kVersion>
int start(void* context, void** handle, void* event) {
  const std::lock_guard<std::mutex> lock(mutex);
  Made* one = make();
  *handle = one;
  if (!begin_line(kVersion)) return 0;
  unsigned char bytes[136];
  std::memcpy(bytes, event, descriptor_bytes(kVersion));
  const void* parent = nullptr;
  std::memcpy(&parent, bytes + kParentOffset, sizeof parent);
  std::memset(bytes + kParentOffset, 0, sizeof parent);
  std::string texts;
  for (const int offset : string_offsets(kVersion, type_of(kVersion, bytes))) {
    const char* text = nullptr;
    std::memcpy(&text, bytes + offset, sizeof text);
    std::memset(bytes + offset, 0, sizeof text);
    if (text != nullptr) texts += " " + std::to_string(offset) + "=" + text;
  }
  std::fprintf(file, "start %d %s %s ", one->number, number_of(context).c_str(),
               number_of(parent).c_str());
  write_bytes(bytes, descriptor_bytes(kVersion));
  std::fprintf(file, "%s\n", texts.c_str());
  return 0;
}

int stop(void* handle) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (begin_line(0)) std::fprintf(file, "stop %s\n", number_of(handle).c_str());
  return 0;
}

int note_state(void* handle, int state, void* arguments) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (!begin_line(0)) return 0;
  std::fprintf(file, "state %s %d ", number_of(handle).c_str(), state);
  if (arguments == nullptr) {
    std::fputc('-', file);
  } else {
    write_bytes(static_cast<const unsigned char*>(arguments), kStateBytes);
  }
  std::fputc('\n', file);
  return 0;
}

int finalize(void* context) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (!begin_line(0)) return 0;
  std::fprintf(file, "finalize %s\n", number_of(context).c_str());
  std::fflush(file);
  return 0;
}

template <class Init>
struct Table {
  const char* name;
  Init init;
  int (*start)(void*, void**, void*);
  int (*stop)(void*);
  int (*state)(void*, int, void*);
  int (*finalize)(void*);
};
using V1 = Table<int (*)(void**, int*)>;
using V4 = Table<int (*)(void**, int*, const char*, uint64_t, int, int, int, void*)>;
using V5 = Table<int (*)(void**, uint64_t, int*, const char*, int, int, int, void*)>;

}  // namespace

extern "C" {
#define TABLE(kind, version, init)           \
  extern const kind ncclProfiler_v##version; \
  const kind ncclProfiler_v##version { "calls", init, start<version>, stop, note_state, finalize }
TABLE(V1, 1, init_v1<1>);
TABLE(V1, 2, init_v1<2>);
TABLE(V1, 3, init_v1<3>);
TABLE(V4, 4, init_v4);
TABLE(V5, 5, init_v5<5>);
TABLE(V5, 6, init_v5<6>);
TABLE(V5, 7, init_v5<7>);
}

}  // namespace aon::test::nccl
