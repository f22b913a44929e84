#include "tests/fake_nccl/fake_nccl.h"

#include <dlfcn.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace aon::test::nccl {
namespace {

constexpr const char* kFunctions[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                      "AllReduce", "SendRecv", "Send",      "Recv"};
// Pointers of another process.
void* const kForeignContext = reinterpret_cast<void*>(0x7f00c0de1000);
void* const kForeignHandle = reinterpret_cast<void*>(0x7f00c0de2000);
constexpr int kTimerOffset = 1000;  ///< the GPU's timer is that many ns ahead of the clock

uint8_t function_number(const std::string& name) {
  for (uint8_t i = 0; i < 8; ++i) {
    if (name == kFunctions[i]) return i;
  }
  return 0xff;
}

/// Strings of NCCL are static; here they live as long as the program.
const char* keep(const std::string& text) {
  static std::mutex mutex;
  static std::vector<std::string*> all;
  const std::lock_guard<std::mutex> lock(mutex);
  for (const std::string* known : all) {
    if (*known == text) return known->c_str();
  }
  all.push_back(new std::string(text));
  return all.back()->c_str();
}

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "fake_nccl: %s\n", what);
  std::exit(2);
}

/// As many ranks on each as the launcher says; without one all are on this node.
int node_count(int rank_count) {
  const char* local = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  const int each = local == nullptr ? 0 : std::atoi(local);
  return each <= 0 ? 1 : (rank_count + each - 1) / each;
}

}  // namespace

uint64_t gpu_now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec) +
         kTimerOffset;
}

Worker::Worker() : thread_([this] { run(); }) {}

Worker::~Worker() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Worker::give(std::function<void()> task) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    tasks_.push(std::move(task));
  }
  changed_.notify_all();
}

void Worker::wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return tasks_.empty() && !is_busy_; });
}

void Worker::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_over_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop();
    is_busy_ = true;
    lock.unlock();
    task();
    lock.lock();
    is_busy_ = false;
    changed_.notify_all();
  }
}

namespace {

/// Any beginning of "STATIC_PLUGIN" is that, as in NCCL.
void* open_plugin(const std::string& name) {
  const bool is_static = strncasecmp("STATIC_PLUGIN", name.c_str(), name.size()) == 0;
  void* library = dlopen(is_static ? nullptr : name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr || name.find('/') != std::string::npos) return library;
  return dlopen(("libnccl-profiler-" + name + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

Plugin::Plugin(int newest) { load(newest); }

void Plugin::reload() {
  dlclose(library_);
  table_ = nullptr;
  load(version_);
}

void Plugin::load(int newest) {
  const char* name = std::getenv("NCCL_PROFILER_PLUGIN");
  if (name == nullptr || *name == '\0') name = "libnccl-profiler.so";
  library_ = open_plugin(name);
  if (library_ == nullptr) die(dlerror());
  for (version_ = newest; version_ > 0 && table_ == nullptr; --version_) {
    const std::string symbol = "ncclProfiler_v" + std::to_string(version_);
    table_ = static_cast<const Table*>(dlsym(library_, symbol.c_str()));
    if (table_ != nullptr) break;
  }
  if (table_ == nullptr) die("the plugin has no version that NCCL knows");
}

void* Plugin::init(uint64_t id, const char* name, int rank_count, int rank) {
  using InitV1 = int (*)(void**, int*);
  using InitV4 = int (*)(void**, int*, const char*, uint64_t, int, int, int, void*);
  using InitV5 = int (*)(void**, uint64_t, int*, const char*, int, int, int, void*);
  void* context = reinterpret_cast<void*>(0x5678);
  const int before = mask();
  const int nodes = node_count(rank_count);
  int result;
  if (version_ <= 3) {
    result = reinterpret_cast<InitV1>(table_->init)(&context, &mask_);
  } else if (version_ == 4) {
    result = reinterpret_cast<InitV4>(table_->init)(&context, &mask_, name, id, nodes, rank_count,
                                                    rank, nullptr);
  } else {
    result = reinterpret_cast<InitV5>(table_->init)(&context, id, &mask_, name, nodes, rank_count,
                                                    rank, nullptr);
  }
  if (result != 0) die("init failed");
  // NCCL before 2.30 would call with that context all the same.
  if (context == nullptr && mask() != before) die("init gave no context and changed the mask");
  return context;
}

void Plugin::finalize(void* context) {
  if (context != nullptr) table_->finalize(context);
}

Communicator::Communicator(Plugin* plugin, Worker* proxy, uint64_t id, int rank_count, int rank,
                           const char* name, bool is_in_group)
    : plugin_(plugin), proxy_(proxy), rank_count_(rank_count), rank_(rank) {
  const auto init = [&] { context_ = plugin_->init(id, name, rank_count, rank); };
  // In a group, or not blocking, it is done by a thread of NCCL's own.
  if (is_in_group) {
    std::thread(init).join();
  } else {
    init();
  }
}

void Communicator::finalize() {
  if (proxy_ != nullptr) proxy_->wait();
  plugin_->finalize(context_);
}

void* Communicator::start_api(const Call& call, void* group, const Oddities& odd) {
  const int version = plugin_->version();
  const bool is_p2p = call.is_p2p();
  Event event(version, is_p2p ? kP2pApi : kCollApi, group, 0);
  event.put(24, keep(call.function)).put(32, call.count).put(40, keep(call.type));
  if (is_p2p) {
    event.put(48, reinterpret_cast<void*>(0x77)).put(56, odd.graph_captured);
  } else {
    event.put(48, call.root).put(56, reinterpret_cast<void*>(0x77)).put(64, odd.graph_captured);
  }
  void* handle = plugin_->start(context_, event);
  if (!odd.api_never_stops) plugin_->stop(handle);
  if (odd.api_stops_twice) plugin_->stop(handle);
  return handle;
}

/// AllGather and Broadcast reach this layer in bytes.
Event Communicator::coll(const Call& call, void* parent) {
  const int version = plugin_->version();
  const CollOffsets& at = kCollOffsets[version];
  const bool in_bytes = call.function == "AllGather" || call.function == "Broadcast";
  const uint64_t count = in_bytes && call.type == "ncclFloat32" ? call.count * 4 : call.count;
  Event event(version, kColl, parent, rank_);
  const uint8_t number = function_number(call.function);
  event.put(at.sequence, sequence_[number % 16]).put(at.count, count).put(at.root, call.root);
  // A launched graph need not tell all ranks of itself, and is counted where it does.
  if (!is_replaying_ || wants(kKernelCh)) ++sequence_[number % 16];
  event.put(at.channels, static_cast<uint8_t>(call.channels));
  if (version == 1) {
    event.put(at.function, number).put(at.type, static_cast<uint8_t>(in_bytes ? 0 : 7));
    event.put(at.algorithm, uint8_t{1}).put(at.protocol, uint8_t{2});
    return event;
  }
  if (version == 7) event.put(120, call.is_symmetric);
  event.put(at.function, keep(call.function));
  event.put(at.type, keep(in_bytes ? "ncclInt8" : call.type));
  event.put(at.algorithm, keep("RING")).put(at.protocol, keep("SIMPLE"));
  return event;
}

Event Communicator::p2p(const Call& call, void* parent) {
  const int version = plugin_->version();
  const P2pOffsets& at = kP2pOffsets[version];
  Event event(version, kP2p, parent, rank_);
  event.put(at.count, call.count).put(at.peer, call.root);
  if (version == 1) {
    event.put(at.function, function_number(call.function)).put(at.type, uint8_t{7});
    return event;
  }
  event.put(at.function, keep(call.function)).put(at.type, keep(call.type));
  if (at.channels >= 0) event.put(at.channels, static_cast<uint8_t>(call.channels));
  return event;
}

namespace {

/// A GPU tells nothing before it has happened.
void wait_until(uint64_t time_ns) {
  for (uint64_t now_ns; (now_ns = gpu_now_ns()) < time_ns;) {
    if (time_ns - now_ns < 1'000'000) continue;
    std::this_thread::sleep_for(std::chrono::nanoseconds(time_ns - now_ns));
  }
}

void pass(int us) { std::this_thread::sleep_for(std::chrono::microseconds(us)); }

}  // namespace

/// What a rank sends to itself is no proxy's work, and has no channels before NCCL 2.31.
bool Communicator::is_to_itself(const Call& call) const {
  return call.is_p2p() && call.root == rank_ && plugin_->version() < 7;
}

void Communicator::start_channels(const Task& task, uint64_t begin_ns, const Oddities& odd,
                                  std::vector<Channel>* channels) {
  if (is_to_itself(task.call)) return;
  const uint64_t gpu_ns = task.call.gpu_ns != 0 ? task.call.gpu_ns : odd.gpu_ns;
  for (int i = 0; i < task.call.channels - odd.missing_channels; ++i) {
    const uint64_t own_ns = begin_ns + 1000u * static_cast<unsigned>(i);
    wait_until(own_ns);
    if (odd.channels_stop_alone) {
      plugin_->stop(nullptr);
      continue;
    }
    Event event(plugin_->version(), kKernelCh, task.handle, 0);
    event.put(24, static_cast<uint8_t>(i));
    if (plugin_->version() >= 4) event.put(32, own_ns);
    channels->push_back({plugin_->start(context_, event), own_ns + gpu_ns});
  }
}

void Communicator::stop_channels(std::vector<Channel> channels, const Oddities& odd) {
  if (odd.never_ends) return;
  std::stable_sort(channels.begin(), channels.end(),
                   [](const Channel& a, const Channel& b) { return a.end_ns < b.end_ns; });
  for (Channel& channel : channels) {
    wait_until(channel.end_ns);
    plugin_->state(channel.handle, 22, odd.no_timer ? nullptr : &channel.end_ns);
    plugin_->stop(channel.handle);
  }
}

/// Of each channel the receiving side comes first.
void Communicator::start_proxies(const Task& task, const Oddities& odd,
                                 std::vector<Proxy>* proxies) {
  const Call& call = task.call;
  if (is_to_itself(call)) return;
  const int next = call.is_p2p() ? call.root : (rank_ + 1) % rank_count_;
  const int previous = call.is_p2p() ? call.root : (rank_ + rank_count_ - 1) % rank_count_;
  for (int channel = 0; channel < call.channels; ++channel) {
    for (const bool is_send : {false, true}) {
      if (call.function == (is_send ? "Recv" : "Send")) continue;
      Event event(plugin_->version(), kProxyOp, odd.is_foreign ? kForeignHandle : task.handle,
                  rank_);
      event.put(24, static_cast<int32_t>(getpid() + (odd.is_foreign ? 1 : 0)));
      event.put(28, static_cast<uint8_t>(channel)).put(32, is_send ? next : previous);
      event.put(36, odd.steps).put(40, 4096).put(44, is_send ? 1 : 0);
      void* context = odd.is_foreign ? kForeignContext : context_;
      proxies->push_back({plugin_->start(context, event), is_send});
    }
  }
}

/// Steps are under way side by side. Each waits 1 ms for the network, and a tenth of that for
/// anything else, but for what `odd` says. A state that has no bytes is told those of another one.
void Communicator::proxy_steps(const std::vector<Proxy>& proxies, const Oddities& odd) {
  struct Step {
    void* handle;
    int number;
    bool is_send;
  };
  const int version = plugin_->version();
  void* context = odd.is_foreign ? kForeignContext : context_;
  std::vector<Step> steps;
  const auto tell = [&](bool is_send, int state) {
    for (const Step& step : steps) {
      uint64_t arguments[2] = {4096, 0};
      if (step.is_send == is_send) plugin_->state(step.handle, state, arguments);
    }
  };
  const auto use_network = [&](const Step& step) {
    if (!wants_network_) return;
    Event event(version, kNetPlugin, step.handle, rank_);
    plugin_->stop(plugin_->start(context, event.put(24, int64_t{1} << 16 | 1)));
  };
  const auto stop = [&](bool is_send) {
    for (const Step& step : steps) {
      const bool is_lost = odd.loses_stops && step.number % 2 != 0;
      if (step.is_send == is_send && !is_lost) plugin_->stop(step.handle);
    }
  };
  for (int first = 0; first < odd.steps; first += kStepsInFlight) {
    steps.clear();
    for (int number = first; number < std::min(odd.steps, first + kStepsInFlight); ++number) {
      for (const Proxy& proxy : proxies) {
        Event event(version, kProxyStep, proxy.handle, rank_);
        steps.push_back({plugin_->start(context, event.put(24, number)), number, proxy.is_send});
        uint64_t arguments[2] = {4096, 0};
        plugin_->state(steps.back().handle, proxy.is_send ? 8 : 10, arguments);
      }
    }
    if (odd.never_ends) return;
    if (odd.takes_late) {
      tell(false, 11);
      tell(false, 12);
    }
    pass(odd.gpu_wait_us);
    if (version >= 4) tell(true, 20);
    if (version >= 4) pass(100);
    tell(true, 9);
    for (const Step& step : steps) use_network(step);
    pass(odd.network_wait_us);
    stop(true);
    if (!odd.takes_late) tell(false, 11);
    pass(100);
    if (!odd.takes_late) tell(false, 12);
    pass(100);
    stop(false);
  }
}

/// On the proxy's thread: what a group of operations does.
void Communicator::progress(const std::vector<Task>& tasks, uint64_t begin_ns, const Oddities& odd,
                            int mask) {
  const auto wants = [mask](uint64_t events) {
    return (static_cast<uint64_t>(mask) & events) != 0;
  };
  std::vector<Proxy> proxies;
  std::vector<Channel> channels;
  if (wants(kProxyOp | kProxyStep | kNetPlugin)) {
    for (const Task& task : tasks) start_proxies(task, odd, &proxies);
  }
  for (const Proxy& proxy : proxies) {
    uint64_t arguments[2] = {};
    plugin_->state(proxy.handle, 19, arguments);
  }
  wants_network_ = wants(kNetPlugin);
  const bool has_steps = wants(kProxyStep | kNetPlugin);
  if (has_steps && odd.is_queued) proxy_steps(proxies, odd);
  if (wants(kKernelCh)) {
    for (const Task& task : tasks) start_channels(task, begin_ns, odd, &channels);
  }
  if (has_steps && !odd.is_queued) proxy_steps(proxies, odd);
  for (const Proxy& proxy : proxies) {
    if (!odd.loses_stops && !odd.never_ends) plugin_->stop(proxy.handle);
  }
  stop_channels(std::move(channels), odd);
}

/// All operations of a group start before any stops, and in between the proxy is woken.
void Communicator::work(const std::vector<Call>& calls, const std::vector<void*>& parents,
                        const Oddities& odd) {
  if (!wants_children()) return;
  void* group = plugin_->start(context_, Event(plugin_->version(), kGroup, nullptr, 0));
  std::vector<Task> tasks;
  // Before 2.28 nothing is told of what is in a group that the plugin has declined.
  const bool is_told = plugin_->version() >= 5 || group != nullptr;
  for (size_t i = 0; i < calls.size() && is_told && !odd.work_never_starts; ++i) {
    const Call& call = calls[i];
    Event event = call.is_p2p() ? p2p(call, parents[i]) : coll(call, parents[i]);
    tasks.push_back({call, plugin_->start(context_, event)});
  }
  if (proxy_ != nullptr && wants(kProxyOp | kProxyStep | kNetPlugin | kKernelCh)) {
    uint64_t begin_ns = begin_ns_ != 0 ? begin_ns_ + odd.queued_ns : gpu_now_ns();
    begin_ns = odd.begin_ns != 0 ? odd.begin_ns : std::max(begin_ns, busy_until_ns_);
    for (const Task& task : tasks) {
      const uint64_t gpu_ns = task.call.gpu_ns != 0 ? task.call.gpu_ns : odd.gpu_ns;
      const uint64_t last_ns = begin_ns + 1000u * static_cast<unsigned>(task.call.channels);
      busy_until_ns_ = std::max(busy_until_ns_, last_ns + gpu_ns);
    }
    proxy_->give([=, mask = mask_, this] { progress(tasks, begin_ns, odd, mask); });
  }
  for (const Task& task : tasks) plugin_->stop(task.handle);
  plugin_->stop(group);
}

/// When a graph is captured, too: it has these copies, and nobody is told when they run.
void Communicator::copy(const std::vector<Call>& calls, const std::vector<void*>& parents) {
  if (!wants(kCeColl)) return;
  for (size_t i = 0; i < calls.size(); ++i) {
    Event event(plugin_->version(), kCeColl, parents[i], rank_);
    event.put(24, sync_count_).put(32, keep(calls[i].function)).put(56, calls[i].count);
    event.put(64, calls[i].root).put(72, keep(calls[i].type));
    sync_count_ += 2;  // before its copies and behind them
    plugin_->stop(plugin_->start(context_, event));
  }
}

/// What has been called goes to the GPU.
void Communicator::run(const std::vector<Call>& calls, const std::vector<void*>& parents,
                       void* group, const Oddities& odd) {
  const int version = plugin_->version();
  const bool has_api = version >= 5;
  // Of one rank only what it sends to itself has work.
  const bool has_work = rank_count_ > 1 || std::all_of(calls.begin(), calls.end(),
                                                       [](const Call& c) { return c.is_p2p(); });
  if (odd.copy_engines) copy(calls, parents);
  if (has_work && has_api && wants(kKernelLaunch) && !odd.copy_engines) {
    Event launch(version, kKernelLaunch, group, 0);
    void* handle = plugin_->start(context_, launch.put(24, reinterpret_cast<void*>(0x77)));
    if (!odd.graph_captured) launch_kernel();
    plugin_->stop(handle);
    begin_ns_ = gpu_now_ns();
  }
  if (has_work && !odd.graph_captured && !odd.copy_engines) work(calls, parents, odd);
  begin_ns_ = 0;
}

void* Communicator::launch(const std::vector<Call>& calls, const Oddities& odd,
                           Communicator* other) {
  const int version = plugin_->version();
  const bool has_api = version >= 5;
  mask_ = plugin_->mask();
  void* group = nullptr;
  std::vector<void*> parents(calls.size(), nullptr);
  std::vector<void*> others(calls.size(), nullptr);
  if (other != nullptr) other->mask_ = mask_;
  if (has_api && wants(~kProxyCtrl)) {
    Event event(version, kGroupApi, nullptr, 0);
    event.put(24, odd.graph_captured).put(28, calls.size() > 1 ? 2 : 1);  // its own depth and ours
    group = plugin_->start(context_, event);
    plugin_->state(group, 23, nullptr);
    for (size_t i = 0; i < calls.size(); ++i) parents[i] = start_api(calls[i], group, odd);
    for (size_t i = 0; other != nullptr && i < calls.size(); ++i)
      others[i] = other->start_api(calls[i], group, odd);
    plugin_->state(group, 24, nullptr);
  }
  run(calls, parents, group, odd);
  if (other != nullptr) other->run(calls, others, group, odd);
  if (has_api) plugin_->stop(group);
  return parents.back();
}

Graph Communicator::capture(const Call& call) {
  void* const stale = launch(call, {.graph_captured = true});
  return {call, stale, mask_};
}

/// All by one thread of the driver's. Symmetric kernels tell no times to a graph.
void Communicator::replay(const Graph& graph) {
  static Worker driver;
  mask_ = graph.mask;
  is_replaying_ = true;
  const int missing = graph.call.is_symmetric ? graph.call.channels : 0;
  driver.give([&] { work({graph.call}, {graph.stale}, {.missing_channels = missing}); });
  driver.wait();
  is_replaying_ = false;
}

}  // namespace aon::test::nccl
