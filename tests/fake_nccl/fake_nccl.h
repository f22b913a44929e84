/// Does to a profiler plugin what NCCL does, without a GPU: loads it as NCCL would, asks for the
/// newest symbol first, heeds the activation mask, and makes the calls in NCCL's order on the
/// threads that NCCL uses: the program's, a proxy's, and one of the driver's for launched graphs.
///
///     program:  GroupApi 23 CollApi.. 24 KernelLaunch.. Group Coll.. /Coll.. /Group /GroupApi
///     proxy:      ProxyOp.. 19.. KernelCh.. ProxyStep.. /ProxyStep.. /ProxyOp.. 22 /KernelCh..
///
/// Source: nccl 2.28.9, src/plugin/profiler.cc and src/enqueue.cc, and what that
/// NCCL did on an H200 (tests/replay/nccl/h200-...). On purpose this differs: what a version does
/// not promise to set is junk, there it is zeros; the proxy begins at once, not some ms later; and
/// there are events of the network plugin, which sockets on one connection have none of.
/// Thread: a Communicator is used by one thread at a time, as NCCL's are.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
#include <vector>

#include "tests/fake_nccl/events.h"

namespace aon::test::nccl {

/// What is launched on the device, if there is to be one (device.cpp).
void launch_kernel();

/// What the GPU's timer counts.
uint64_t gpu_now_ns();

/// The plugin's table: all versions have these five behind the name, with two kinds of arguments
/// for init.
struct Table {
  const char* name;
  void* init;
  int (*start)(void* context, void** handle, void* event);
  int (*stop)(void* handle);
  int (*state)(void* handle, int state, void* arguments);
  int (*finalize)(void* context);
};

/// A thread that does what it is given, in order.
class Worker {
 public:
  Worker();
  ~Worker();
  void give(std::function<void()> task);
  void wait();  ///< until all of it is done

 private:
  void run();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::queue<std::function<void()>> tasks_;
  bool is_busy_ = false;
  bool is_over_ = false;
  std::thread thread_;
};

/// The loaded plugin and NCCL's own variable, the mask.
class Plugin {
 public:
  /// Loads what NCCL_PROFILER_PLUGIN names (a path, a name, STATIC_PLUGIN: what is there already),
  /// and takes its newest version up to `newest`. Exits with a line on stderr where NCCL would go
  /// on without a plugin.
  explicit Plugin(int newest);

  int version() const { return version_; }
  bool wants(uint64_t events) const {
    return (static_cast<uint64_t>(__atomic_load_n(&mask_, __ATOMIC_RELAXED)) & events) != 0;
  }
  int mask() const { return __atomic_load_n(&mask_, __ATOMIC_RELAXED); }
  void set_mask(int mask) { __atomic_store_n(&mask_, mask, __ATOMIC_RELAXED); }

  /// Returns the context.
  void* init(uint64_t id, const char* name, int rank_count, int rank);
  void finalize(void* context);
  /// As NCCL does when its last communicator is gone: it closes the library, and opens it again for
  /// the next one.
  void reload();

  void* start(void* context, Event event) {
    void* handle = reinterpret_cast<void*>(0x1234);  // what a plugin leaves is used as it is
    table_->start(context, &handle, event.data());
    return handle;
  }
  void stop(void* handle) { table_->stop(handle); }
  void state(void* handle, int state, void* arguments) { table_->state(handle, state, arguments); }
  const Table& table() const { return *table_; }

 private:
  void load(int newest);
  void* library_ = nullptr;
  const Table* table_ = nullptr;
  int version_ = 0;
  int mask_ = 0;
};

/// What an operation is told with.
struct Call {
  std::string function = "AllReduce";
  uint64_t count = 1 << 20;
  std::string type = "ncclFloat32";
  int root = 0;  ///< or peer
  int channels = 2;
  uint64_t gpu_ns = 0;  ///< 0: as of Oddities
  bool is_symmetric = false;
  bool is_p2p() const { return function == "Send" || function == "Recv"; }
};

/// Which of NCCL's oddities a launch shows.
struct Oddities {
  bool api_stops_twice = false;
  bool api_never_stops = false;
  bool work_never_starts = false;  ///< symmetric kernels, copy engines of old versions
  bool graph_captured = false;
  bool channels_stop_alone = false;  ///< KernelCh stop without start
  int missing_channels = 0;
  bool no_timer = false;  ///< null arguments of state 22
  uint64_t gpu_ns = 50'000;
  uint64_t queued_ns = 0;   ///< from the launch to the begin on the GPU
  uint64_t begin_ns = 0;    ///< that its channels tell; 0: when it was launched
  bool never_ends = false;  ///< on the GPU
  int steps = 4;            ///< of the proxy on each channel
  int gpu_wait_us = 100;    ///< of these for the GPU, and for the network
  int network_wait_us = 1000;
  bool is_queued = false;     ///< steps wait for a kernel that has not begun, which is told later
  bool takes_late = false;    ///< what it receives waits for its GPU, not for the network
  bool is_foreign = false;    ///< the proxy works for another process (PXN)
  bool loses_stops = false;   ///< of every second step, and of the operation
  bool copy_engines = false;  ///< no kernel; from version 6 on
};

/// A captured call. What it will tell of was settled then.
struct Graph {
  Call call;
  void* stale;  ///< the call's handle
  int mask;
};

class Communicator {
 public:
  Communicator(Plugin* plugin, Worker* proxy, uint64_t id, int rank_count, int rank,
               const char* name = nullptr, bool is_in_group = false);
  /// Leaves without finalize, as programs that do not destroy their communicators.
  ~Communicator() = default;
  void finalize();

  /// One group of calls, launched; `other` makes the same ones in it, behind these. The group is
  /// told with this one's context alone.   Returns the handle of the last call.
  void* launch(const std::vector<Call>& calls, const Oddities& odd = {},
               Communicator* other = nullptr);
  void* launch(const Call& call, const Oddities& odd = {}) {
    return launch(std::vector<Call>{call}, odd);
  }
  /// The call goes into a graph, and what the graph does each time it is launched.
  Graph capture(const Call& call);
  void replay(const Graph& graph);

  void* context() const { return context_; }
  int rank() const { return rank_; }

 private:
  /// An operation that the proxy works on.
  struct Task {
    Call call;
    void* handle;
  };
  struct Proxy {
    void* handle;
    bool is_send;
  };
  struct Channel {
    void* handle;
    uint64_t end_ns;
  };
  void* start_api(const Call& call, void* group, const Oddities& odd);
  void run(const std::vector<Call>& calls, const std::vector<void*>& parents, void* group,
           const Oddities& odd);
  void work(const std::vector<Call>& calls, const std::vector<void*>& parents, const Oddities& odd);
  void copy(const std::vector<Call>& calls, const std::vector<void*>& parents);
  Event coll(const Call& call, void* parent);
  Event p2p(const Call& call, void* parent);
  bool is_to_itself(const Call& call) const;
  void progress(const std::vector<Task>& tasks, uint64_t begin_ns, const Oddities& odd, int mask);
  void start_proxies(const Task& task, const Oddities& odd, std::vector<Proxy>* proxies);
  void proxy_steps(const std::vector<Proxy>& proxies, const Oddities& odd);
  void start_channels(const Task& task, uint64_t begin_ns, const Oddities& odd,
                      std::vector<Channel>* channels);
  void stop_channels(std::vector<Channel> channels, const Oddities& odd);
  /// By the mask as it was when the group began, or the graph was captured.
  bool wants(uint64_t events) const { return (static_cast<uint64_t>(mask_) & events) != 0; }
  bool wants_children() const { return wants(kColl | kP2p | 8 | 16 | kKernelCh | 128); }

  Plugin* plugin_;
  Worker* proxy_;
  void* context_;
  int rank_count_;
  int rank_;
  int mask_ = 0;
  bool is_replaying_ = false;
  uint64_t sequence_[16] = {};
  uint64_t sync_count_ = 0;     ///< of the copy engines
  uint64_t begin_ns_ = 0;       ///< of what is being launched, on the GPU
  uint64_t busy_until_ns_ = 0;  ///< groups run one after the other there
  bool wants_network_ = false;  ///< the proxy's
};

constexpr uint64_t kId = 0xfeedc0de12345678;  ///< of the communicator of all ranks

inline int number_from(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}
inline int world_rank() { return number_from("OMPI_COMM_WORLD_RANK", 0); }
inline int world_size() { return number_from("OMPI_COMM_WORLD_SIZE", 2); }
inline void sleep_ms(uint64_t time_ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(time_ms));
}

// Cases (train.cpp, paths.cpp).
void train(Plugin* plugin, Worker* proxy, int count);
void copy_engines(Plugin* plugin, int count);
void reloaded(Plugin* plugin, int count);
void graph(Plugin* plugin, Worker* proxy, int count, const Call& call);
void late_proxies(Plugin* plugin, Worker* proxy, int count, bool has_other);

}  // namespace aon::test::nccl
