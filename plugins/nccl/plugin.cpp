// The symbols that NCCL looks for, one per version of its interface: libnccl-profiler-aon.so.
// Every callback returns success: what we cannot follow is none of NCCL's concern.
#include <aon/crash.h>
#include <aon/writer.h>

#include "nccl/chain.h"
#include "nccl/operations.h"
#include "nccl/state.h"

namespace aon::nccl {
namespace {

/// A failed init leaves the mask as it is; NCCL before 2.30 would otherwise go on with a null
/// context. `init_theirs(function, context, mask)` calls a chained plugin's.
template <class InitTheirs>
int init(const CommunicatorFacts& facts, void** context, int* mask, InitTheirs init_theirs) {
  if (context != nullptr) *context = nullptr;
  if (context == nullptr || mask == nullptr) return kSuccess;
  void* ours = add_communicator(facts, mask);
  aon_follow_crashes();
  const ChainedPlugin* theirs = chained_plugin(facts.version);
  if (theirs == nullptr) {
    *context = has_chain() ? keep_contexts(ours, nullptr, false) : ours;
    return kSuccess;
  }
  void* their_context = nullptr;
  const int result = init_theirs(theirs->init, &their_context, chained_mask());
  *context = keep_contexts(ours, their_context, result == kSuccess);
  if (result == kSuccess) {
    heed_chained_mask(mask);
  } else {
    tell_failed_chain(result);
  }
  return kSuccess;
}

template <int kVersion>
int init_alone(void** context, int* mask) {
  return init({0, nullptr, 0, 0, 0, kVersion}, context, mask, [](void* function, void** c, int* m) {
    return reinterpret_cast<InitV1>(function)(c, m);
  });
}

uint32_t count_of(int told) { return told > 0 ? static_cast<uint32_t>(told) : 0; }

int init_v4(void** context, int* mask, const char* name, uint64_t id, int nodes, int rank_count,
            int rank, Logger logger) {
  return init({id, name, count_of(nodes), count_of(rank_count), rank, 4}, context, mask,
              [&](void* function, void** c, int* m) {
                return reinterpret_cast<InitV4>(function)(c, m, name, id, nodes, rank_count, rank,
                                                          logger);
              });
}

template <int kVersion>
int init_v5(void** context, uint64_t id, int* mask, const char* name, int nodes, int rank_count,
            int rank, Logger logger) {
  return init({id, name, count_of(nodes), count_of(rank_count), rank, kVersion}, context, mask,
              [&](void* function, void** c, int* m) {
                return reinterpret_cast<InitV5>(function)(c, id, m, name, nodes, rank_count, rank,
                                                          logger);
              });
}

template <int kVersion>
int start(void* context, void** handle, void* event) {
  if (handle == nullptr) return kSuccess;
  *handle = nullptr;
  if (event == nullptr) return kSuccess;
  const auto* descriptor = static_cast<const Descriptor*>(event);
  const uint64_t type = kVersion <= 4 ? descriptor->type & 0xff : descriptor->type;
  *handle = AON_LIKELY(!has_chain()) ? start_event(kVersion, context, descriptor, type)
                                     : start_both(kVersion, context, descriptor, type);
  return kSuccess;
}

int stop(void* handle) {
  if (AON_LIKELY(!has_chain())) {
    stop_event(handle);
  } else {
    stop_both(handle);
  }
  return kSuccess;
}

int note_state(void* handle, int state, void* arguments) {
  if (AON_LIKELY(!has_chain())) {
    record_state(handle, state, static_cast<const StateArguments*>(arguments));
  } else {
    record_state_both(handle, state, arguments);
  }
  return kSuccess;
}

int finalize(void* context) {
  if (AON_LIKELY(!has_chain())) {
    remove_communicator(context);
  } else {
    finalize_both(context);
  }
  return kSuccess;
}

template <int kVersion, class Init>
constexpr Profiler<Init> profiler(Init init_function) {
  return {"AON", init_function, start<kVersion>, stop, note_state, finalize};
}

}  // namespace
}  // namespace aon::nccl

extern "C" {
// NOLINTBEGIN(readability-identifier-naming): NCCL's names
using namespace aon::nccl;
extern AON_EXPORT const Profiler<InitV1> ncclProfiler_v1;
extern AON_EXPORT const Profiler<InitV1> ncclProfiler_v2;
extern AON_EXPORT const Profiler<InitV1> ncclProfiler_v3;
extern AON_EXPORT const Profiler<InitV4> ncclProfiler_v4;
extern AON_EXPORT const Profiler<InitV5> ncclProfiler_v5;
extern AON_EXPORT const Profiler<InitV5> ncclProfiler_v6;
extern AON_EXPORT const Profiler<InitV5> ncclProfiler_v7;
const Profiler<InitV1> ncclProfiler_v1 = profiler<1, InitV1>(init_alone<1>);
const Profiler<InitV1> ncclProfiler_v2 = profiler<2, InitV1>(init_alone<2>);
const Profiler<InitV1> ncclProfiler_v3 = profiler<3, InitV1>(init_alone<3>);
const Profiler<InitV4> ncclProfiler_v4 = profiler<4, InitV4>(init_v4);
const Profiler<InitV5> ncclProfiler_v5 = profiler<5, InitV5>(init_v5<5>);
const Profiler<InitV5> ncclProfiler_v6 = profiler<6, InitV5>(init_v5<6>);
const Profiler<InitV5> ncclProfiler_v7 = profiler<7, InitV5>(init_v5<7>);
// NOLINTEND(readability-identifier-naming)
}
