#include "nvml/poller.h"

#include <aon/mutex.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>

namespace aon::nvml {
namespace {

constexpr uint32_t kEndTimeoutMs = 2000;
constexpr size_t kStackBytes = size_t{512} << 10;

struct Moment {
  uint64_t ns;
  uint64_t ticks;
};

/// What was read between two looks at both clocks, by its time: of rows that were held up others
/// have their own.
std::vector<Round> rounds_of(const std::vector<GpuValue>& values, const Moment& begin,
                             const Moment& end) {
  const double rate = end.ns > begin.ns ? static_cast<double>(end.ticks - begin.ticks) /
                                              static_cast<double>(end.ns - begin.ns)
                                        : 0;
  std::vector<Round> rounds;
  for (const GpuValue& value : values) {
    const double passed_ns = static_cast<double>(value.read_ns - std::min(begin.ns, value.read_ns));
    const uint64_t ticks = begin.ticks + static_cast<uint64_t>(rate * passed_ns);
    if (rounds.empty() || rounds.back().ticks != ticks) rounds.push_back({ticks, {}});
    rounds.back().values.push_back(value);
  }
  return rounds;
}

}  // namespace

struct Poller::Shared {
  Shared(const char* library_name, std::function<uint64_t()> ticks, uint32_t rest)
      : gpus(library_name, steady_ns, rest), now_ticks(std::move(ticks)) {}

  // The poller's thread. Others read it before that runs, and the list of GPUs once it is made.
  Gpus gpus;
  std::function<uint64_t()> now_ticks;

  const uint64_t start_ns = steady_ns();

  Mutex mutex;
  std::condition_variable changed;
  bool is_found AON_GUARDED_BY(mutex) = false;
  bool is_to_end AON_GUARDED_BY(mutex) = false;
  bool has_ended AON_GUARDED_BY(mutex) = false;
  uint64_t asked AON_GUARDED_BY(mutex) = 0;     ///< number of read_now() calls
  uint64_t answered AON_GUARDED_BY(mutex) = 0;  ///< of those, that were read for
  node::StateText state AON_GUARDED_BY(mutex);
  std::vector<Round> rounds AON_GUARDED_BY(mutex);
  size_t waiting AON_GUARDED_BY(mutex) = 0;  ///< values in `rounds`
  uint64_t dropped_count AON_GUARDED_BY(mutex) = 0;
  uint64_t asked_ns AON_GUARDED_BY(mutex) = 0;  ///< when it was asked what is open; 0: nothing
  uint64_t longest_ns AON_GUARDED_BY(mutex) = 0;

  bool find() AON_EXCLUDES(mutex);
  /// Rests until something is due.   False: it is to end.
  bool rest() AON_EXCLUDES(mutex);
  /// False: it is to end, and who gave the clock may be gone.
  bool read() AON_EXCLUDES(mutex);
  void end() AON_EXCLUDES(mutex);
};

bool Poller::Shared::find() {
  const bool has_gpus = gpus.find();
  if (has_gpus && !read()) return false;  // what is refused is known then
  const MutexLock lock(&mutex);
  is_found = true;
  if (!has_gpus) state = gpus.state();
  changed.notify_all();
  return has_gpus;
}

bool Poller::Shared::rest() {
  MutexLock lock(&mutex);
  const uint64_t now_ns = steady_ns();
  const uint64_t due_ns = gpus.next_ns();
  if (due_ns > now_ns) {
    lock.wait_for(&changed, std::chrono::nanoseconds(due_ns - now_ns),
                  [&]() AON_REQUIRES(mutex) { return is_to_end || asked != answered; });
  }
  return !is_to_end;
}

bool Poller::Shared::read() {
  uint64_t asked_before = 0;
  Moment begin{};
  {
    const MutexLock lock(&mutex);
    if (is_to_end && asked == answered) return false;
    begin = {steady_ns(), now_ticks()};
    asked_before = asked;
    asked_ns = begin.ns;
    if (asked != answered) gpus.hurry();
  }
  const std::vector<GpuValue> values = gpus.read(steady_ns());
  const node::StateText state_now = gpus.state();
  const MutexLock lock(&mutex);
  state = state_now;
  longest_ns = std::max(longest_ns, steady_ns() - asked_ns);
  asked_ns = 0;
  if (longest_ns >= kHangNs)
    state.add(AON_STATE_DEGRADED,
              "the driver did not answer for " + std::to_string(longest_ns / kNsPerSecond) +
                  " s: no values of that time",
              "dmesg | grep NVRM");
  answered = asked_before;
  changed.notify_all();
  if (values.empty() || is_to_end) return true;  // nobody takes them any more
  if (waiting + values.size() > kMaxWaiting) {
    dropped_count += values.size();
    return true;
  }
  waiting += values.size();
  for (Round& round : rounds_of(values, begin, {steady_ns(), now_ticks()}))
    rounds.push_back(std::move(round));
  return true;
}

void Poller::Shared::end() {
  const MutexLock lock(&mutex);
  has_ended = true;
  changed.notify_all();
}

Poller::Poller(const char* library_name, std::function<uint64_t()> now_ticks, uint32_t rest)
    : shared_(std::make_shared<Shared>(library_name, std::move(now_ticks), rest)) {}

void* Poller::run(void* argument) {
  pthread_setname_np(pthread_self(), "aon-nvml");
  const std::unique_ptr<std::shared_ptr<Shared>> shared(
      static_cast<std::shared_ptr<Shared>*>(argument));
  Shared& self = **shared;
  if (self.find()) {
    while (self.rest() && self.read()) {
    }
    self.gpus.finish();
  }
  self.end();
  return nullptr;
}

bool Poller::start() {
  {
    const MutexLock lock(&shared_->mutex);
    shared_->state = shared_->gpus.state();
    if (shared_->state.state == AON_STATE_OFF) return false;
  }
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  auto own = std::make_unique<std::shared_ptr<Shared>>(shared_);
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, run, own.get());
  pthread_attr_destroy(&attributes);
  if (error != 0) {
    const MutexLock lock(&shared_->mutex);
    shared_->state.add(AON_STATE_OFF, "no thread can be made", "ulimit -u");
    return false;
  }
  static_cast<void>(own.release());  // run() owns it
  is_running_ = true;
  return true;
}

Poller::~Poller() {
  if (!is_running_) return;
  MutexLock lock(&shared_->mutex);
  shared_->is_to_end = true;
  shared_->changed.notify_all();
  lock.wait_for(&shared_->changed, std::chrono::milliseconds(kEndTimeoutMs),
                [&]() AON_REQUIRES(shared_->mutex) { return shared_->has_ended; });
}

bool Poller::wait_found(uint32_t timeout_ms) {
  MutexLock lock(&shared_->mutex);
  return lock.wait_for(&shared_->changed, std::chrono::milliseconds(timeout_ms),
                       [&]() AON_REQUIRES(shared_->mutex) { return shared_->is_found; });
}

bool Poller::read_now(uint32_t timeout_ms) {
  MutexLock lock(&shared_->mutex);
  if (!is_running_ || !shared_->is_found || shared_->has_ended) return false;
  const uint64_t mine = ++shared_->asked;
  shared_->changed.notify_all();
  return lock.wait_for(&shared_->changed, std::chrono::milliseconds(timeout_ms),
                       [&]() AON_REQUIRES(shared_->mutex) { return shared_->answered >= mine; });
}

Taken Poller::take() {
  Taken taken;
  const MutexLock lock(&shared_->mutex);
  taken.is_found = shared_->is_found;
  taken.state = shared_->state;
  taken.rounds.swap(shared_->rounds);
  shared_->waiting = 0;
  std::swap(taken.dropped_count, shared_->dropped_count);
  if (shared_->asked_ns == 0) return taken;
  taken.asking_ns = steady_ns() - shared_->asked_ns;
  taken.asked_at_ns = shared_->asked_ns - shared_->start_ns;
  taken.query = shared_->gpus.query();
  return taken;
}

std::vector<Gpu> Poller::gpus() {
  const MutexLock lock(&shared_->mutex);
  return shared_->is_found ? shared_->gpus.gpus() : std::vector<Gpu>();
}

}  // namespace aon::nvml
