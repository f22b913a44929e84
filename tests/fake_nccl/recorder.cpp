// Another profiler plugin, for tests of AON_NCCL_CHAIN: prints what it is told on stdout, and "BAD"
// where it is given a context or parent that it did not make. Work of a proxy without a context is
// "foreign".
//
//     RECORDER_MASK=MASK    what it asks for; 2 if unset
//     RECORDER_ONCE=1       written at the first init alone, as NVIDIA's example does; the address
//                           is kept at each
//     RECORDER_INIT=CODE    what its init returns
//     RECORDER_HOLE=1       it has no function for the end of an event
//     RECORDER_LATER=MASK   written through that address at the first event
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct Made {
  uint64_t magic = 0x4143524d41474943;
  uint64_t type = 0;
  std::atomic<int> told{0};  ///< of a context: its events
};

int* kept_mask;
std::atomic<int> init_count;
std::atomic<int> event_count;

bool is_mine(const void* pointer) {
  return pointer == nullptr || static_cast<const Made*>(pointer)->magic == Made().magic;
}

int init(void** context, uint64_t id, int* mask, const char* name, int, int rank_count, int rank,
         void*) {
  const char* text = std::getenv("RECORDER_MASK");
  const bool writes_once = std::getenv("RECORDER_ONCE") != nullptr;
  if (!writes_once || init_count++ == 0) *mask = text == nullptr ? 2 : std::atoi(text);
  kept_mask = mask;
  *context = new Made;
  std::printf("init %s %d of %d %d\n", name, rank, rank_count, id != 0);
  const char* code = std::getenv("RECORDER_INIT");
  return code == nullptr ? 0 : std::atoi(code);
}

int start(void* context, void** handle, void* event) {
  uint64_t type;
  void* parent;
  std::memcpy(&type, event, 8);
  std::memcpy(&parent, static_cast<char*>(event) + 8, 8);
  const bool is_foreign = context == nullptr && (type == 8 || type == 16 || type == 128);
  const bool is_good = (is_foreign || context != nullptr) && is_mine(context) && is_mine(parent);
  const uint64_t parents = parent == nullptr ? 0 : static_cast<Made*>(parent)->type;
  const char* word = is_foreign ? "foreign" : "start";
  std::printf("%s %llu in %llu\n", is_good ? word : "BAD", static_cast<unsigned long long>(type),
              static_cast<unsigned long long>(parents));
  if (is_good && !is_foreign) ++static_cast<Made*>(context)->told;
  const char* later = std::getenv("RECORDER_LATER");
  if (later != nullptr && event_count++ == 0) *kept_mask = std::atoi(later);
  auto* made = new Made;
  made->type = type;
  *handle = made;
  return 0;
}

int stop(void* handle) {
  std::printf("%s %llu\n", handle != nullptr && is_mine(handle) ? "stop" : "BAD",
              static_cast<unsigned long long>(static_cast<Made*>(handle)->type));
  return 0;
}

int state(void* handle, int state, void*) {
  std::printf("%s %llu %d\n", is_mine(handle) ? "state" : "BAD",
              static_cast<unsigned long long>(static_cast<Made*>(handle)->type), state);
  return 0;
}

int finalize(void* context) {
  if (context == nullptr || !is_mine(context)) {
    std::puts("BAD");
  } else {
    std::printf("finalize %d\n", static_cast<Made*>(context)->told.load());
  }
  return 0;
}

struct Table {
  const char* name;
  int (*init)(void**, uint64_t, int*, const char*, int, int, int, void*);
  int (*start)(void*, void**, void*);
  int (*stop)(void*);
  int (*state)(void*, int, void*);
  int (*finalize)(void*);
};

}  // namespace

extern "C" {
// NOLINTBEGIN(readability-identifier-naming): NCCL's names
extern const Table ncclProfiler_v5;
extern Table ncclProfiler_v7;
const Table ncclProfiler_v5{"recorder", init, start, stop, state, finalize};
Table ncclProfiler_v7{"recorder", init, start, stop, state, finalize};
// NOLINTEND(readability-identifier-naming)
[[gnu::constructor]] void make_hole() {
  if (std::getenv("RECORDER_HOLE") != nullptr) ncclProfiler_v7.stop = nullptr;
}
}
