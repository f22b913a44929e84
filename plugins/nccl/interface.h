/// The part of NCCL's interface to profiler plugins that we use, versions 1 to 7, in our own words:
/// nothing of NCCL is needed to build. Layout only; the offsets are those of NVIDIA's headers
/// (nccl 2.23 to 2.31, plugin/profiler/profiler_v*.h) as a compiler lays them out.
///
/// | version | NCCL | what a plugin must know                                                    |
/// |---------|------|----------------------------------------------------------------------------|
/// | 1       | 2.23 | numbers where later versions have names                                    |
/// | 2, 3    | 2.24 | init() says nothing of the communicator; its events have its hash, or 0    |
/// | 4       | 2.27 | init() has id, size and rank; an event's type is one byte, the others junk |
/// | 5       | 2.28 | events of the program's calls; 8 bytes of type; another order in init()    |
/// | 6       | 2.29 | collectives by copy engines                                                |
/// | 7       | 2.31 | longer at its end                                                          |
#pragma once

#include <cstddef>
#include <cstdint>

namespace aon::nccl {

/// Bits of the activation mask, and types of events.
enum Event : uint64_t {
  kGroup = 1,
  kColl = 2,
  kP2p = 4,
  kProxyOp = 8,
  kProxyStep = 16,
  kProxyCtrl = 32,
  kKernelChannel = 64,
  kNetPlugin = 128,
  kGroupApi = 256,
  kCollApi = 512,
  kP2pApi = 1024,
  kKernelLaunch = 2048,
  kCopyEngineColl = 4096,
  kCopyEngineSync = 8192,
  kCopyEngineBatch = 16384,
  kKernelPhase = 32768,
};

/// Events that a version has.
constexpr uint64_t events_of(int version) {
  if (version <= 4) return 0xff;
  if (version == 5) return 0xfff;
  return version == 6 ? 0x7fff : 0xffff;
}

/// Whether a plugin with `mask`, of events that the version has, is told of an event: of all that
/// have those it asks for below them (nccl 2.28.9 to 2.31, src/plugin/profiler.cc).
constexpr bool is_told(uint64_t type, uint64_t mask) {
  constexpr uint64_t kStepUp = kProxyStep | kNetPlugin;
  constexpr uint64_t kChannelUp = kKernelChannel | kKernelPhase;
  constexpr uint64_t kChildren = kProxyOp | kStepUp | kChannelUp;
  constexpr uint64_t kCopyUp = kCopyEngineColl | kCopyEngineSync | kCopyEngineBatch;
  switch (type) {
    case kGroupApi:
      return (mask & ~uint64_t{kProxyCtrl}) != 0;
    case kCollApi:
      return (mask & (kCollApi | kColl | kChildren | kCopyUp)) != 0;
    case kP2pApi:
      return (mask & (kP2pApi | kP2p | kChildren)) != 0;
    case kGroup:
      return (mask & (kGroup | kColl | kP2p | kChildren)) != 0;
    case kColl:
      return (mask & (kColl | kChildren)) != 0;
    case kP2p:
      return (mask & (kP2p | kChildren)) != 0;
    case kProxyOp:
      return (mask & (kProxyOp | kStepUp)) != 0;
    case kProxyStep:
      return (mask & kStepUp) != 0;
    case kKernelChannel:
      return (mask & kChannelUp) != 0;
    case kCopyEngineColl:
      return (mask & kCopyUp) != 0;
    default:
      return (mask & type) != 0;
  }
}

/// States that we read; an enum passed as int.
constexpr int kStateSendGpuWait = 8;
constexpr int kStateSendWait = 9;
constexpr int kStateRecvWait = 10;
constexpr int kStateRecvFlushWait = 11;
constexpr int kStateRecvGpuWait = 12;
constexpr int kStateSendPeerWait = 20;
constexpr int kStateChannelStop = 22;
constexpr int kStateGroupEndStart = 24;

constexpr int kSuccess = 0;

/// What all events begin with. Up to version 4 only the first byte of `type` is set.
struct Descriptor {
  uint64_t type;
  void* parent;
  int32_t rank;
  int32_t reserved;
};
static_assert(sizeof(Descriptor) == 24 && offsetof(Descriptor, parent) == 8 &&
              offsetof(Descriptor, rank) == 16);

struct CollApiEvent {
  Descriptor head;
  const char* function;
  uint64_t count;
  const char* type;
  int32_t root;
  void* stream;
  bool graph_captured;
};
static_assert(offsetof(CollApiEvent, function) == 24 && offsetof(CollApiEvent, count) == 32 &&
              offsetof(CollApiEvent, type) == 40 && offsetof(CollApiEvent, root) == 48 &&
              offsetof(CollApiEvent, stream) == 56 && offsetof(CollApiEvent, graph_captured) == 64);

struct P2pApiEvent {
  Descriptor head;
  const char* function;
  uint64_t count;
  const char* type;
  void* stream;
  bool graph_captured;
};
static_assert(offsetof(P2pApiEvent, function) == 24 && offsetof(P2pApiEvent, count) == 32 &&
              offsetof(P2pApiEvent, type) == 40 && offsetof(P2pApiEvent, stream) == 48 &&
              offsetof(P2pApiEvent, graph_captured) == 56);

/// Versions 4 to 7; also a collective by copy engines up to `type`.
struct CollEvent {
  Descriptor head;
  uint64_t sequence;
  const char* function;
  const void* send;
  void* receive;
  uint64_t count;
  int32_t root;
  const char* type;
  uint8_t channel_count;
  uint8_t warp_count;
  const char* algorithm;
  const char* protocol;
};
static_assert(offsetof(CollEvent, sequence) == 24 && offsetof(CollEvent, function) == 32 &&
              offsetof(CollEvent, count) == 56 && offsetof(CollEvent, root) == 64 &&
              offsetof(CollEvent, type) == 72 && offsetof(CollEvent, channel_count) == 80 &&
              offsetof(CollEvent, algorithm) == 88 && offsetof(CollEvent, protocol) == 96);

/// What version 7 has behind it. What a graph launches of symmetric kernels has no channels.
struct CollEventV7 {
  CollEvent coll;
  void* group;
  const char* variant;
  uint8_t is_symmetric;
};
static_assert(offsetof(CollEventV7, group) == 104 && offsetof(CollEventV7, variant) == 112 &&
              offsetof(CollEventV7, is_symmetric) == 120);

/// What versions 1 to 3 begin a collective with.
struct OldColl {
  Descriptor head;
  const char* communicator_name;
  uint64_t communicator_hash;
  uint64_t sequence;
};
static_assert(offsetof(OldColl, communicator_name) == 24 &&
              offsetof(OldColl, communicator_hash) == 32 && offsetof(OldColl, sequence) == 40);

struct CollEventV3 {
  OldColl old;
  const char* function;
  const void* send;
  void* receive;
  uint64_t count;
  int32_t root;
  const char* type;
  uint8_t channel_count;
  uint8_t warp_count;
  const char* algorithm;
  const char* protocol;
};
static_assert(offsetof(CollEventV3, function) == 48 && offsetof(CollEventV3, count) == 72 &&
              offsetof(CollEventV3, root) == 80 && offsetof(CollEventV3, type) == 88 &&
              offsetof(CollEventV3, channel_count) == 96 &&
              offsetof(CollEventV3, algorithm) == 104 && offsetof(CollEventV3, protocol) == 112);

struct CollEventV2 {
  OldColl old;
  const char* function;
  const void* send;
  void* receive;
  uint64_t count;
  int32_t root;
  const char* type;
  uint64_t traffic_bytes;
  uint8_t channel_count;
  uint8_t warp_count;
  const char* algorithm;
  const char* protocol;
};
static_assert(offsetof(CollEventV2, type) == 88 && offsetof(CollEventV2, channel_count) == 104 &&
              offsetof(CollEventV2, algorithm) == 112 && offsetof(CollEventV2, protocol) == 120);

struct CollEventV1 {
  OldColl old;
  uint8_t function;
  const void* send;
  void* receive;
  uint64_t count;
  int32_t root;
  uint8_t type;
  int32_t operation;
  uint64_t traffic_bytes;
  uint8_t channel_count;
  uint8_t warp_count;
  uint8_t algorithm;
  uint8_t protocol;
};
static_assert(offsetof(CollEventV1, function) == 48 && offsetof(CollEventV1, count) == 72 &&
              offsetof(CollEventV1, root) == 80 && offsetof(CollEventV1, type) == 84 &&
              offsetof(CollEventV1, operation) == 88 &&
              offsetof(CollEventV1, channel_count) == 104 &&
              offsetof(CollEventV1, algorithm) == 106 && offsetof(CollEventV1, protocol) == 107);

/// Versions 4 to 7. Version 4 may leave `channel_count` unset.
struct P2pEvent {
  Descriptor head;
  const char* function;
  void* buffer;
  const char* type;
  uint64_t count;
  int32_t peer;
  uint8_t channel_count;
};
static_assert(offsetof(P2pEvent, function) == 24 && offsetof(P2pEvent, type) == 40 &&
              offsetof(P2pEvent, count) == 48 && offsetof(P2pEvent, peer) == 56 &&
              offsetof(P2pEvent, channel_count) == 60);

/// Versions 2 and 3.
struct P2pEventV2 {
  Descriptor head;
  const char* communicator_name;
  uint64_t communicator_hash;
  const char* function;
  void* buffer;
  const char* type;
  uint64_t count;
  int32_t peer;
};
static_assert(offsetof(P2pEventV2, function) == 40 && offsetof(P2pEventV2, type) == 56 &&
              offsetof(P2pEventV2, count) == 64 && offsetof(P2pEventV2, peer) == 72);

struct P2pEventV1 {
  Descriptor head;
  const char* communicator_name;
  uint64_t communicator_hash;
  uint8_t function;
  void* buffer;
  uint8_t type;
  uint64_t count;
  int32_t peer;
};
static_assert(offsetof(P2pEventV1, function) == 40 && offsetof(P2pEventV1, type) == 56 &&
              offsetof(P2pEventV1, count) == 64 && offsetof(P2pEventV1, peer) == 72);

/// Version 3 has no timer.
struct KernelChannelEvent {
  Descriptor head;
  uint8_t channel;
  uint64_t timer_ns;  ///< of the GPU
};
static_assert(offsetof(KernelChannelEvent, channel) == 24 &&
              offsetof(KernelChannelEvent, timer_ns) == 32);

/// `process`: whose handles `head.parent` and the context are (PXN). `is_send` is an int.
struct ProxyOpEvent {
  Descriptor head;
  int32_t process;
  uint8_t channel;
  int32_t peer;
  int32_t step_count;
  int32_t chunk_bytes;
  int32_t is_send;
};
static_assert(offsetof(ProxyOpEvent, process) == 24 && offsetof(ProxyOpEvent, channel) == 28 &&
              offsetof(ProxyOpEvent, peer) == 32 && offsetof(ProxyOpEvent, step_count) == 36 &&
              offsetof(ProxyOpEvent, chunk_bytes) == 40 && offsetof(ProxyOpEvent, is_send) == 44);

struct ProxyStepEvent {
  Descriptor head;
  int32_t step;
};
static_assert(offsetof(ProxyStepEvent, step) == 24);

/// Arguments of a state, versions 4 to 7: of kStateChannelStop the GPU's timer, of kStateSendWait
/// and kStateRecvFlushWait the bytes of the step.
union StateArguments {
  uint64_t timer_ns;
  uint64_t transferred_bytes;
};
static_assert(sizeof(StateArguments) == 8);

using Logger = void (*)(int level, unsigned long flags, const char* file, int line,
                        const char* format, ...);
using InitV1 = int (*)(void** context, int* mask);
using InitV4 = int (*)(void** context, int* mask, const char* name, uint64_t id, int node_count,
                       int rank_count, int rank, Logger logger);
using InitV5 = int (*)(void** context, uint64_t id, int* mask, const char* name, int node_count,
                       int rank_count, int rank, Logger logger);

/// The symbol `ncclProfiler_vN`, for each version with its init.
template <class Init>
struct Profiler {
  const char* name;
  Init init;
  int (*start_event)(void* context, void** handle, void* descriptor);
  int (*stop_event)(void* handle);
  int (*record_event_state)(void* handle, int state, void* arguments);
  int (*finalize)(void* context);
};
static_assert(sizeof(Profiler<InitV5>) == 48 && offsetof(Profiler<InitV5>, finalize) == 40);

}  // namespace aon::nccl
