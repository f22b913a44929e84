// The helper process of the provider gpu-counters: samples the hardware counters of all GPUs that
// it can see, by libcupti, and writes frames (frames.h) to its standard output.
//
//     aon-gpu-counters SET INTERVAL_US [WINDOW_MS REST_MS]
//
// It is a process of its own because CUPTI's data base takes 120 MB, and because CUPTI has crashed.
// It ends when its standard input ends, when its parent does, and when it costs more than it may.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <utility>

#include "gpu_counters/driver.h"
#include "gpu_counters/frames.h"
#include "gpu_counters/session.h"

namespace {

using namespace aon::gpu_counters;

constexpr int kTurnMs = 200;
constexpr uint64_t kRetryNs = 10'000'000'000;  ///< while another profiler has the counters
constexpr uint64_t kUsageNs = 1'000'000'000;
constexpr uint64_t kMaxResidentBytes = uint64_t{1} << 30;
constexpr double kMaxCpuShare = 0.25;  ///< of one core, over kCpuWindowNs
constexpr uint64_t kCpuWindowNs = 10'000'000'000;
constexpr int kNiceness = 10;

uint64_t time_ns(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t resident_bytes() {
  unsigned long total = 0;
  unsigned long resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  const int count = fscanf(file, "%lu %lu", &total, &resident);
  fclose(file);
  return count == 2 ? resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) : 0;
}

struct Device {
  DriverDevice facts;
  std::unique_ptr<Session> session;
  bool is_running = false;
  uint64_t retry_ns = 0;  ///< when to try again; 0: never
  uint64_t told_overflows = 0;
};

class Helper {
 public:
  Helper(std::span<const Metric> metrics, uint64_t interval_ns, uint64_t window_ns,
         uint64_t rest_ns)
      : metrics_(metrics), interval_ns_(interval_ns), window_ns_(window_ns), rest_ns_(rest_ns) {}

  int run() {
    if (!open()) return flush() ? 1 : 0;
    window_end_ns_ = window_ns_ == 0 ? UINT64_MAX : time_ns(CLOCK_MONOTONIC) + window_ns_;
    while (flush() && rest() && is_cheap()) turn();
    for (uint32_t i = 0; i < devices_.size(); ++i) {
      if (devices_[i].is_running && !is_resting_) pause(i);
    }
    flush();
    return 0;
  }

 private:
  bool open() {
    Problem problem = library_.open();
    if (library_.remark()) tell(kAllDevices, library_.remark(), FrameKind::kRemark);
    if (!problem) problem = find_devices(&found_);
    if (!problem) {
      auto parameters = sized<Initialize>();
      problem = problem_of("cuptiProfilerInitialize", library_.call().initialize(&parameters));
    }
    if (problem) {
      tell(kAllDevices, problem);
      return false;
    }
    for (const DriverDevice& facts : found_) {
      const auto number = static_cast<uint32_t>(devices_.size());
      devices_.push_back({facts, std::make_unique<Session>(library_.call(), number)});
      try_start(number);
    }
    return true;
  }

  void tell(uint16_t device, const Problem& problem, FrameKind kind = FrameKind::kProblem) {
    FrameHead head;
    head.kind = kind;
    head.device = device;
    append_frame(head, {}, {problem.reason, problem.remedy}, &out_);
  }

  static std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
    return text;
  }

  void try_start(uint32_t number) {
    Device& device = devices_[number];
    const bool is_retry = device.retry_ns != 0;
    const Problem problem = device.session->start(metrics_, interval_ns_);
    device.is_running = !problem;
    // One that another profiler has may be free later.
    const bool is_busy = problem.reason.find("in use") != std::string::npos;
    device.retry_ns = is_busy ? time_ns(CLOCK_MONOTONIC) + kRetryNs : 0;
    if (problem && (!is_retry || !is_busy)) tell(static_cast<uint16_t>(number), problem);
    if (problem) return;
    if (is_retry) tell(static_cast<uint16_t>(number), {});
    std::vector<std::string> series;
    for (const Metric& metric : device.session->metrics()) series.emplace_back(metric.series);
    FrameHead head;
    head.kind = FrameKind::kDevice;
    head.device = static_cast<uint16_t>(number);
    append_frame(head, {},
                 {device.facts.uuid, device.facts.name, device.session->chip(), joined(series),
                  joined(device.session->left_out())},
                 &out_);
  }

  Session::Sink sink_of(uint32_t number) {
    return [=, this](uint64_t start_ns, uint64_t end_ns, std::span<const double> values) {
      FrameHead head;
      head.kind = FrameKind::kSample;
      head.device = static_cast<uint16_t>(number);
      head.start_ns = start_ns;
      head.end_ns = end_ns;
      append_frame(head, values, {}, &out_);
    };
  }

  void read(uint32_t number) { check(number, devices_[number].session->read(sink_of(number))); }

  /// Ends its sampling for a time, or for good.
  void pause(uint32_t number) { check(number, devices_[number].session->stop(sink_of(number))); }

  /// Tells what went wrong.
  void check(uint32_t number, const Problem& problem) {
    Device& device = devices_[number];
    const uint64_t overflows = device.session->overflow_count();
    if (overflows != std::exchange(device.told_overflows, overflows)) {
      FrameHead head;
      head.kind = FrameKind::kLost;
      head.device = static_cast<uint16_t>(number);
      head.end_ns = overflows;
      append_frame(head, {}, {}, &out_);
    }
    if (!problem) return;
    tell(static_cast<uint16_t>(number), problem);
    device.session->stop();
    device.is_running = false;
  }

  void read_all() {
    for (uint32_t i = 0; i < devices_.size(); ++i) {
      if (devices_[i].is_running && !is_resting_) read(i);
    }
  }

  void turn() {
    const uint64_t now_ns = time_ns(CLOCK_MONOTONIC);
    read_all();
    for (uint32_t i = 0; i < devices_.size(); ++i) {
      const bool is_due = devices_[i].retry_ns != 0 && now_ns >= devices_[i].retry_ns;
      if (is_due && !is_resting_) try_start(i);
    }
    if (now_ns < window_end_ns_) return;
    // A burst is over, or the rest after it.
    is_resting_ = !is_resting_;
    window_end_ns_ = now_ns + (is_resting_ ? rest_ns_ : window_ns_);
    for (uint32_t i = 0; i < devices_.size(); ++i) {
      if (devices_[i].is_running) is_resting_ ? pause(i) : start_again(i);
    }
  }

  /// After a rest: somebody else may have taken the counters meanwhile.
  void start_again(uint32_t number) {
    Device& device = devices_[number];
    const Problem problem = device.session->start(metrics_, interval_ns_);
    device.is_running = !problem;
    if (!problem) return;
    tell(static_cast<uint16_t>(number), problem);
    device.retry_ns = time_ns(CLOCK_MONOTONIC) + kRetryNs;
  }

  /// False: nobody reads any more.
  bool flush() {
    size_t at = 0;
    while (at < out_.size()) {
      const ssize_t count = write(STDOUT_FILENO, out_.data() + at, out_.size() - at);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      at += static_cast<size_t>(count);
    }
    out_.clear();
    return true;
  }

  /// False: it is to end.
  bool rest() {
    pollfd input = {STDIN_FILENO, POLLIN, 0};
    return poll(&input, 1, kTurnMs) == 0;
  }

  /// False, and told: it costs more than it may.
  bool is_cheap() {
    const uint64_t now_ns = time_ns(CLOCK_MONOTONIC);
    if (now_ns < next_usage_ns_) return true;
    next_usage_ns_ = now_ns + kUsageNs;
    FrameHead head;
    head.kind = FrameKind::kUsage;
    head.start_ns = time_ns(CLOCK_PROCESS_CPUTIME_ID);
    head.end_ns = resident_bytes();
    append_frame(head, {}, {}, &out_);
    if (head.end_ns > kMaxResidentBytes) {
      tell(kAllDevices, {"the helper took more than 1 GiB of memory and was ended", ""});
      return false;
    }
    if (now_ns < cpu_window_ns_) return true;
    const double share = static_cast<double>(head.start_ns - cpu_window_begin_ns_) /
                         static_cast<double>(kCpuWindowNs);
    const bool is_first = cpu_window_ns_ == 0;  // its start is dear
    cpu_window_ns_ = now_ns + kCpuWindowNs;
    cpu_window_begin_ns_ = head.start_ns;
    if (is_first || share < kMaxCpuShare) return true;
    tell(kAllDevices,
         {"the helper took more than a quarter of a core and was ended", "--gpu-counters core"});
    return false;
  }

  std::span<const Metric> metrics_;
  uint64_t interval_ns_;
  uint64_t window_ns_;
  uint64_t rest_ns_;
  Library library_;
  std::vector<DriverDevice> found_;
  std::vector<Device> devices_;
  std::string out_;
  uint64_t window_end_ns_ = 0;
  bool is_resting_ = false;
  uint64_t next_usage_ns_ = 0;
  uint64_t cpu_window_ns_ = 0;
  uint64_t cpu_window_begin_ns_ = 0;
};

uint64_t number_of(char** arguments, int index, int count) {
  return index < count ? strtoull(arguments[index], nullptr, 10) : 0;
}

}  // namespace

int main(int count, char** arguments) {
  const pid_t parent = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) return 1;  // it was too late
  close_range(STDERR_FILENO + 1, ~0u, 0);
  setpriority(PRIO_PROCESS, 0, kNiceness);
  signal(SIGPIPE, SIG_IGN);
  const auto metrics = count > 2 ? metric_set(arguments[1]) : std::span<const Metric>();
  const uint64_t interval_us = number_of(arguments, 2, count);
  if (metrics.empty() || interval_us == 0) {
    fprintf(stderr, "usage: aon-gpu-counters core|wide INTERVAL_US [WINDOW_MS REST_MS]\n");
    return 2;
  }
  const uint64_t window_ns = number_of(arguments, 3, count) * 1'000'000;
  const uint64_t rest_ns = number_of(arguments, 4, count) * 1'000'000;
  return Helper(metrics, interval_us * 1000, window_ns, rest_ns).run();
}
