#include "core/agent/transfer.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "core/agent/errand.h"
#include "core/agent/proc.h"
#include "core/base/descriptors.h"
#include "core/base/file.h"
#include "core/base/lease.h"
#include "core/base/log.h"
#include "core/base/time.h"
#include "core/cluster/address.h"
#include "core/cluster/meeting.h"
#include "core/cluster/presence.h"
#include "core/cluster/wire.h"
#include "core/delivery/names.h"
#include "core/delivery/receiver.h"

namespace aon::agent {
namespace {

constexpr int kStepMs = 1000;
constexpr int kShortStepMs = 100;
constexpr int kEarlyStepMs = 200;        ///< while nodes look for each other
constexpr int64_t kRankZeroMs = 10'000;  ///< for rank 0 to come, where nobody says how many come
constexpr int64_t kSettleMs = 3000;
constexpr int64_t kFindMs = 5000;        ///< for nodes to find each other when a launch is over
constexpr int64_t kFarewellMs = 10'000;  ///< until all guests are told
constexpr int64_t kKilledMs = 2000;
constexpr int64_t kAssemblingMs = 20'000;            ///< since it was last said
constexpr int64_t kLongestAssemblingMs = 3'600'000;  ///< as long as finish.cpp waits
constexpr int64_t kHungMs = delivery::kLongestSyncMs;
constexpr int64_t kLeastWaitMs = (kLeaseDeadSeconds + 5) * 1000;

void pause_ms(int ms) { poll(nullptr, 0, ms); }

/// True when the keeper wants the end; sleeps `timeout_ms` otherwise.
bool is_end_wanted(int end_fd, int timeout_ms) {
  pollfd readable{end_fd, POLLIN, 0};
  return poll(&readable, 1, timeout_ms) > 0;
}

int64_t wait_ms(const Config& config) {
  return std::max<int64_t>(static_cast<int64_t>(config.arguments.options.wait_s) * 1000,
                           kLeastWaitMs);
}

/// Its address has two places: who finds the same in both sees this job directory.
class Announcement {
 public:
  Announcement(const Config& config, const cluster::AgentAddress& address)
      : config_(config), address_(address) {}
  ~Announcement() {
    cluster::remove_address(agents_of(config_), cluster::kReceiverName);
    cluster::withdraw_from(config_.meeting, cluster::kReceiverName, address_.token);
  }
  Announcement(const Announcement&) = delete;
  Announcement& operator=(const Announcement&) = delete;

  Status tell() const {
    Status status = cluster::make_agents_folder(config_.job_folder);
    if (status)
      status = cluster::write_address(agents_of(config_), cluster::kReceiverName, address_);
    if (status) status = cluster::announce_at(config_.meeting, cluster::kReceiverName, address_);
    return status;
  }

 private:
  const Config& config_;
  const cluster::AgentAddress& address_;
};

delivery::ReceiverSettings settings_of(const Config& config, uint32_t world_size) {
  const Options& options = config.arguments.options;
  delivery::ReceiverSettings settings;
  settings.job_folder = config.job_folder;
  settings.node = config.node;
  settings.node_bytes = options.disk_bytes;
  settings.world_size = world_size;
  settings.waits_for_archive = !options.no_assemble;
  settings.drops_spool = options.drop_spool;
  return settings;
}

template <class Shared>
int run_receiver(const Config& config, uint32_t world_size, Shared* shared, int end_fd) {
  const bool is_assembling = !config.arguments.options.no_assemble;
  delivery::Receiver receiver(settings_of(config, world_size));
  const Result<cluster::AgentAddress> address = receiver.start(cluster::own_addresses());
  if (!address) {
    AON_LOG_WARNING("no spools of other nodes: %s", address.error().message.c_str());
    return kFailed;
  }
  const auto step = [&](int timeout_ms, int wake_fd) {
    receiver.step(timeout_ms, wake_fd);
    shared->turn_ms.store(now_ms(), std::memory_order_relaxed);
    shared->open_count.store(receiver.open_count(), std::memory_order_relaxed);
    shared->guest_count.store(receiver.guest_count(), std::memory_order_relaxed);
    shared->guest_ranks.store(receiver.rank_count(), std::memory_order_relaxed);
  };
  {
    cluster::AddressMirror mirror(agents_of(config), config.meeting, config.node);
    const Announcement announcement(config, *address);
    if (Status status = announcement.tell(); !status) {
      AON_LOG_WARNING("no spools of other nodes: %s", status.error().message.c_str());
      return kFailed;
    }
    cluster::remove_forgotten(config.meeting);
    while (!is_end_wanted(end_fd, 0)) {
      mirror.step();
      step(mirror.is_early() ? kEarlyStepMs : kStepMs, end_fd);
    }
  }
  const int64_t until_ms = now_ms() + (is_assembling ? kFarewellMs : wait_ms(config));
  while (receiver.guest_count() != 0 && now_ms() < until_ms) step(kShortStepMs, -1);
  return kDelivered;
}

int run_courier(const Config& config, delivery::Sender sender, std::atomic<int64_t>* assembling_ms,
                int end_fd) {
  Errand errand(config, std::move(sender), assembling_ms);
  cluster::AddressMirror mirror(agents_of(config), config.meeting, config.node);
  // An earlier agent's is no longer the whole truth.
  ::unlink((config.job_folder + "/" + delivery::kDeliveredNote).c_str());
  int64_t give_up_ms = 0;  ///< 0: not yet
  for (;;) {
    mirror.step();
    const bool is_last = is_end_wanted(end_fd, 0);
    if (errand.is_refused_for_good()) return errand.give_up();
    if (!errand.is_connected()) {
      if (const std::optional<int> result = errand.try_to_connect(is_last)) return *result;
    }
    if (is_last && errand.is_connected()) {
      if (errand.hand_over()) return kDelivered;
    } else if (errand.is_connected()) {
      errand.go_on();
    }
    if (is_last && give_up_ms == 0) give_up_ms = now_ms() + kFindMs;
    // One that is busy with the spools of others has no time for our words: the keeper waits.
    if (is_last && now_ms() >= std::max(give_up_ms, errand.reached_ms() + kFindMs))
      return errand.give_up();
    if (is_last) {
      pause_ms(kShortStepMs);
    } else {
      static_cast<void>(is_end_wanted(end_fd, mirror.is_early() ? kEarlyStepMs : kStepMs));
    }
  }
}

}  // namespace

Transfer::Transfer(const Config& config, const State& state)
    : config_(config), state_(state), started_ms_(now_ms()) {}

Transfer::~Transfer() {
  stop();
  if (shared_ != nullptr) ::munmap(shared_, sizeof(Shared));
}

/// Another node than those whose marks the receiver keeps.
bool Transfer::sees_others() const {
  const auto nodes = cluster::read_presence(config_.job_folder);
  return std::any_of(nodes.begin(), nodes.end(), [&](const cluster::NodePresence& one) {
    return one.node != config_.node && !delivery::is_mark_of_guest(config_.job_folder, one);
  });
}

bool Transfer::is_wanted() {
  if (config_.meeting.empty() || is_shared_) return false;
  if (state_.header().spans_nodes.load(std::memory_order_relaxed) == 0) return false;
  if (first_ms_ == 0) first_ms_ = now_ms();
  is_shared_ = role_ == Role::kNone && sees_others();
  return !is_shared_;
}

bool Transfer::is_settled() const {
  return config_.meeting.empty() || is_shared_ || role_ != Role::kNone ||
         now_ms() - std::max(first_ms_, started_ms_) > kSettleMs;
}

uint32_t Transfer::world_size() const {
  uint32_t largest = 0;
  const uint32_t count = state_.header().process_count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count; ++i)
    largest = std::max<uint32_t>(largest, state_.process(i).world_size);
  return largest;
}

/// A helper that is a world of its own has a rank 0, too.
Transfer::Role Transfer::role_here() const {
  const uint32_t world = world_size();
  const uint32_t count = state_.header().process_count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count; ++i) {
    const ProcessCell& cell = state_.process(i);
    if (cell.rank == 0 && cell.world_size == world) return Role::kReceiver;
  }
  return Role::kCourier;
}

void Transfer::advance() {
  if (!is_wanted()) return;
  const Role role = role_here();
  if (role_ == Role::kCourier && role == Role::kReceiver) {
    ::kill(process_, SIGKILL);  // nobody takes what it brings
    wait_for_end(kKilledMs, [] {});
  }
  if (role_ != Role::kNone) return;
  const StateHeader& header = state_.header();
  uint32_t rank_count = 0;
  for (uint32_t i = 0; i < header.process_count.load(std::memory_order_relaxed); ++i)
    rank_count += state_.process(i).rank >= 0 ? 1 : 0;
  const uint32_t expected = header.expected_ranks.load(std::memory_order_relaxed);
  const bool are_all_here = expected != 0 && rank_count >= expected;
  // Rank 0 may be the last one to come.
  if (role == Role::kReceiver || are_all_here || now_ms() - first_ms_ > kRankZeroMs) start(role);
}

/// False: it cannot be had. The role is that of a process that runs.
bool Transfer::start(Role role) {
  if (shared_ == nullptr) {
    void* memory =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    shared_ = new (memory) Shared{};
  }
  shared_->turn_ms.store(now_ms(), std::memory_order_relaxed);
  shared_->assembling_ms.store(0, std::memory_order_relaxed);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  const UniqueFd their_end(ends[0]);
  UniqueFd our_end(ends[1]);
  const pid_t keeper = ::getpid();
  const pid_t process = ::fork();
  if (process < 0) {
    AON_LOG_WARNING("no process for spools of other nodes: %s", strerror(errno));
    return false;
  }
  if (process == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != keeper) ::_exit(kFailed);
    run(role, their_end.get());
  }
  end_ = std::move(our_end);
  process_ = process;
  role_ = role;
  return true;
}

void Transfer::run(Role role, int end_fd) {
  ::prctl(PR_SET_NAME, role == Role::kReceiver ? "aon-receiver" : "aon-courier");
  // Descriptors of rings and connections are the keeper's: open here they would keep them alive.
  close_descriptors_but({end_fd, log_descriptor()});
  const pid_t keeper = ::getppid();
  const uint32_t world = world_size();
  int code = kFailed;
  try {
    if (role == Role::kReceiver) {
      code = run_receiver(config_, world, shared_, end_fd);
    } else {
      const uint32_t ranks = state_.header().expected_ranks.load(std::memory_order_relaxed);
      code = run_courier(
          config_,
          {config_.folder, config_.node, keeper, process_start_time_ticks(keeper), ranks, world},
          &shared_->assembling_ms, end_fd);
    }
  } catch (const std::exception& error) {
    AON_LOG_WARNING("%s", error.what());
  }
  ::_exit(code);
}

bool Transfer::is_running() const {
  siginfo_t ended{};
  return process_ > 0 &&
         ::waitid(P_PID, static_cast<id_t>(process_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         ended.si_pid == 0;
}

/// In the kernel, where the file system of DIR does not answer.
bool Transfer::is_hung() {
  const int64_t turn_ms = shared_->turn_ms.load(std::memory_order_relaxed);
  if (now_ms() - turn_ms <= kHungMs) return false;
  if (!std::exchange(is_hang_told_, true))
    AON_LOG_WARNING(
        "the process that takes spools of other nodes hangs: they stay on their nodes; "
        "aon finalize joins the directories");
  return true;
}

bool Transfer::has_guests() {
  return role_ == Role::kReceiver && is_running() &&
         shared_->guest_count.load(std::memory_order_relaxed) != 0 && !is_hung();
}

bool Transfer::has_open_guests() {
  return has_guests() && shared_->open_count.load(std::memory_order_relaxed) != 0;
}

void Transfer::await_guests(const std::function<void()>& beat) {
  if (is_wanted() && role_ == Role::kNone && role_here() == Role::kReceiver) start(Role::kReceiver);
  if (role_ != Role::kReceiver) return;
  const uint32_t here = state_.header().expected_ranks.load(std::memory_order_relaxed);
  const int64_t until_ms = now_ms() + kFindMs;
  while (here + shared_->guest_ranks.load(std::memory_order_relaxed) < world_size() &&
         now_ms() < until_ms && is_running()) {
    if (sees_others()) return;  // the directory is shared
    pause_ms(kShortStepMs);
    beat();
  }
}

bool Transfer::deliver(const std::function<void()>& beat) {
  if (is_wanted() && role_ == Role::kNone && role_here() == Role::kCourier) start(Role::kCourier);
  if (role_ != Role::kCourier) return false;
  end_.reset();
  return wait_for_end(wait_ms(config_), beat);
}

/// A courier is let wait as long as somebody makes the archive that may have its spool.
int64_t Transfer::until(int64_t start_ms, int64_t timeout_ms) const {
  const int64_t said_ms = shared_->assembling_ms.load(std::memory_order_relaxed);
  if (role_ != Role::kCourier || end_ || said_ms == 0) return start_ms + timeout_ms;
  return std::clamp(said_ms + kAssemblingMs, start_ms + timeout_ms,
                    start_ms + std::max(timeout_ms, kLongestAssemblingMs));
}

/// Waits for the process to end, and ends it when it takes too long; one that hangs in the kernel
/// is left to it. True: its errand is done.
bool Transfer::wait_for_end(int64_t timeout_ms, const std::function<void()>& beat) {
  const int64_t start_ms = now_ms();
  int64_t until_ms = 0;
  bool is_killed = false;
  int status = 0;
  pid_t ended = 0;
  for (int step_ms = 10;; step_ms = std::min(2 * step_ms, kShortStepMs)) {
    const uint64_t cpu_ns = proc::cpu_time_ns(process_);  // of a zombie, too
    ended = ::waitpid(process_, &status, WNOHANG);
    if (ended == process_) ended_cpu_ns_ += cpu_ns;
    if (ended != 0 && !(ended < 0 && errno == EINTR)) break;
    if (!is_killed) until_ms = until(start_ms, timeout_ms);
    const int64_t late_ms = now_ms() - until_ms;
    if (late_ms >= 0 && !std::exchange(is_killed, true)) {
      if (role_ == Role::kCourier && !end_)  // else the receiver is to take its place
        AON_LOG_WARNING(
            "the spool stays on %s: no archive of rank 0's node had it in time; aon finalize joins "
            "the directories",
            config_.node.c_str());
      ::kill(process_, SIGKILL);
    }
    if (late_ms >= kKilledMs) {
      AON_LOG_WARNING("process %d, for spools of other nodes, hangs in the kernel", process_);
      break;
    }
    pause_ms(step_ms);
    beat();
  }
  const bool is_done = ended == process_ && WIFEXITED(status) && WEXITSTATUS(status) == kDelivered;
  process_ = -1;
  role_ = Role::kNone;
  return is_done;
}

uint64_t Transfer::cpu_time_ns() const noexcept {
  return ended_cpu_ns_ + (process_ > 0 ? proc::cpu_time_ns(process_) : 0);
}

void Transfer::stop() {
  if (process_ <= 0) return;
  end_.reset();
  static_cast<void>(wait_for_end(wait_ms(config_), [] {}));
}

}  // namespace aon::agent
