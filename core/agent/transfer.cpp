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
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/agent/proc.h"
#include "core/base/file.h"
#include "core/base/lease.h"
#include "core/base/log.h"
#include "core/cluster/address.h"
#include "core/cluster/meeting.h"
#include "core/cluster/presence.h"
#include "core/cluster/wire.h"
#include "core/delivery/courier.h"
#include "core/delivery/names.h"
#include "core/delivery/receiver.h"

namespace aon::agent {
namespace {

using cluster::now_ms;
using delivery::kDeliveredNote;

constexpr int kStepMs = 1000;
constexpr int kShortStepMs = 100;
constexpr int64_t kFindMs = 5000;        ///< for nodes to find each other when a launch is over
constexpr int64_t kFarewellMs = 10'000;  ///< until all guests are told
constexpr int64_t kLeastWaitMs = (kLeaseDeadSeconds + 5) * 1000;

enum ExitCode : int { kDelivered = 0, kFailed = 1, kIsShared = 2 };

/// True when the keeper wants the end; sleeps `timeout_ms` otherwise.
bool is_end_wanted(int end_fd, int timeout_ms) {
  pollfd readable{end_fd, POLLIN, 0};
  return poll(&readable, 1, timeout_ms) > 0;
}

std::string agents_of(const Config& config) { return cluster::agents_folder(config.job_folder); }

/// Two names of one address: who finds the same in both sees this job directory.
Status announce(const Config& config, const cluster::AgentAddress& address) {
  Status status = cluster::make_meeting_folder(config.meeting);
  if (status) status = cluster::make_agents_folder(config.job_folder);
  if (status) status = cluster::write_address(agents_of(config), cluster::kReceiverName, address);
  if (status) status = cluster::write_address(config.meeting, cluster::kReceiverName, address);
  return status;
}

int64_t wait_ms(const Config& config) {
  return std::max<int64_t>(static_cast<int64_t>(config.arguments.options.wait_s) * 1000,
                           kLeastWaitMs);
}

template <class Shared>
int run_receiver(const Config& config, Shared* shared, int end_fd) {
  const bool is_assembling = !config.arguments.options.no_assemble;
  delivery::Receiver receiver(config.job_folder, config.node, config.arguments.options.disk_bytes,
                              is_assembling);
  const Result<cluster::AgentAddress> address = receiver.start(cluster::own_addresses());
  Status status = address ? announce(config, *address) : Status(address.error());
  if (!status) {
    AON_LOG_WARNING("no spools of other nodes: %s", status.error().message.c_str());
    return kFailed;
  }
  const auto step = [&](int timeout_ms) {
    receiver.step(timeout_ms);
    shared->guest_count.store(receiver.guest_count(), std::memory_order_relaxed);
    shared->guest_ranks.store(receiver.rank_count(), std::memory_order_relaxed);
    shared->guest_nodes.store(receiver.node_count(), std::memory_order_relaxed);
  };
  while (!is_end_wanted(end_fd, 0)) step(kShortStepMs);
  cluster::remove_address(agents_of(config), cluster::kReceiverName);
  cluster::remove_address(config.meeting, cluster::kReceiverName);
  const int64_t until_ms = now_ms() + (is_assembling ? kFarewellMs : wait_ms(config));
  while (receiver.guest_count() != 0 && now_ms() < until_ms) step(kShortStepMs);
  cluster::leave_meeting_folder(config.meeting);
  return kDelivered;
}

/// A courier and where it goes.
class Errand {
 public:
  Errand(const Config& config, delivery::Sender sender)
      : config_(config), courier_(std::move(sender)) {}

  /// nullopt: not there yet.
  std::optional<int> try_to_connect() {
    const auto address = cluster::read_address(config_.meeting, cluster::kReceiverName);
    if (!address) return std::nullopt;
    const auto here = cluster::read_address(agents_of(config_), cluster::kReceiverName);
    if (here && here->token == address->token) return kIsShared;
    if (Status status = courier_.connect(*address); !status) complain(status);
    return std::nullopt;
  }

  /// While the ranks run.
  void go_on() {
    Status status = courier_.send_new();
    if (status) status = courier_.beat();
    if (!status) complain(status);
  }

  /// The spool is complete. True: the archive has it.
  bool hand_over() {
    Status status = courier_.send_rest();
    const int64_t until_ms = now_ms() + kMostWaitMs;
    while (status && now_ms() < until_ms) {
      const Result<std::string> place = courier_.wait_assembled(kStepMs);
      if (!place) {
        status = place.error();
      } else if (!place->empty()) {
        leave_note(*place);
        return true;
      } else {
        status = courier_.beat();
      }
    }
    if (!status) complain(status);
    return false;
  }

  bool is_connected() const { return courier_.is_connected(); }

 private:
  /// The keeper ends this process earlier, after --wait.
  static constexpr int64_t kMostWaitMs = 3600'000;

  void complain(const Status& status) {
    if (status.error().message == last_problem_) return;
    last_problem_ = status.error().message;
    AON_LOG_WARNING("the spool stays on %s: %s", config_.node.c_str(), last_problem_.c_str());
  }

  void leave_note(const std::string& place) const {
    const std::string path = config_.job_folder + "/" + kDeliveredNote;
    const auto file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
    const std::string line = "What " + config_.node + " recorded is in " + place + "\n";
    if (file) static_cast<void>(write_all(file->get(), line.data(), line.size()));
  }

  const Config& config_;
  delivery::Courier courier_;
  std::string last_problem_;
};

int run_courier(const Config& config, delivery::Sender sender, int end_fd) {
  Errand errand(config, std::move(sender));
  int64_t give_up_ms = 0;  ///< 0: not yet
  for (;;) {
    if (!errand.is_connected()) {
      if (const std::optional<int> result = errand.try_to_connect()) return *result;
    }
    const bool is_last = is_end_wanted(end_fd, 0);
    if (is_last && errand.is_connected()) {
      if (errand.hand_over()) return kDelivered;
    } else if (errand.is_connected()) {
      errand.go_on();
    }
    if (is_last && give_up_ms == 0) give_up_ms = now_ms() + kFindMs;
    if (is_last && now_ms() >= give_up_ms) return kFailed;
    const int pause_ms = is_last ? kShortStepMs : kStepMs;
    if (is_last) {
      poll(nullptr, 0, pause_ms);
    } else {
      static_cast<void>(is_end_wanted(end_fd, pause_ms));
    }
  }
}

void close_all_but(std::vector<int> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned first = 3;
  for (const int fd : kept) {
    if (fd < 3) continue;
    const auto number = static_cast<unsigned>(fd);
    if (number > first) ::close_range(first, number - 1, 0);
    first = number + 1;
  }
  ::close_range(first, ~0u, 0);
}

void remove_spool_of(const Config& config) {
  std::error_code error;
  std::filesystem::remove_all(config.folder, error);
  const std::filesystem::path place = std::filesystem::path(config.job_folder) / "spool";
  std::filesystem::remove(place / config.node, error);  // a link, with --spool-dir
  std::filesystem::remove(place, error);
}

}  // namespace

Transfer::~Transfer() {
  stop();
  if (shared_ != nullptr) ::munmap(shared_, sizeof(Shared));
}

/// Another node than those whose marks the receiver keeps.
bool Transfer::sees_others() const {
  const uint32_t guests =
      shared_ != nullptr ? shared_->guest_nodes.load(std::memory_order_relaxed) : 0;
  uint32_t seen = 0;
  for (const cluster::NodePresence& one : cluster::read_presence(config_.job_folder))
    seen += one.node != config_.node ? 1 : 0;
  return seen > guests;
}

/// Nobody needs it where another node is seen in DIR/agents.
bool Transfer::is_needed() {
  if (role_ != Role::kNone || config_.meeting.empty() || is_shared_) return false;
  if (state_.header().spans_nodes.load(std::memory_order_relaxed) == 0) return false;
  is_shared_ = sees_others();
  return !is_shared_;
}

Transfer::Role Transfer::role_here() const {
  const uint32_t count = state_.header().process_count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count; ++i) {
    if (state_.process(i).rank == 0) return Role::kReceiver;
  }
  return Role::kCourier;
}

void Transfer::advance() {
  if (!is_needed()) return;
  const StateHeader& header = state_.header();
  uint32_t rank_count = 0;
  for (uint32_t i = 0; i < header.process_count.load(std::memory_order_relaxed); ++i)
    rank_count += state_.process(i).rank >= 0 ? 1 : 0;
  // Rank 0 may be the last one to come.
  if (rank_count < header.expected_ranks.load(std::memory_order_relaxed)) return;
  start(role_here());
}

void Transfer::start(Role role) {
  int ends[2];
  void* memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || ::pipe2(ends, O_CLOEXEC) != 0) return;
  shared_ = new (memory) Shared{};
  role_ = role;
  const pid_t keeper = ::getpid();
  const delivery::Sender sender{config_.folder, config_.node, keeper,
                                process_start_time_ticks(keeper),
                                state_.header().expected_ranks.load(std::memory_order_relaxed)};
  process_ = ::fork();
  if (process_ != 0) {
    ::close(ends[0]);
    end_.reset(ends[1]);
    return;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NAME, role == Role::kReceiver ? "aon-receiver" : "aon-courier");
  if (::getppid() != keeper) ::_exit(kFailed);
  // Descriptors of rings and connections are the keeper's: open here they would keep them alive.
  const int end_fd = ends[0];
  close_all_but({end_fd, log_descriptor()});
  int code = kFailed;
  try {
    code = role == Role::kReceiver ? run_receiver(config_, shared_, end_fd)
                                   : run_courier(config_, sender, end_fd);
  } catch (const std::exception& error) {
    AON_LOG_WARNING("%s", error.what());
  }
  ::_exit(code);
}

bool Transfer::has_guests() const {
  siginfo_t ended{};
  const bool is_there =
      role_ == Role::kReceiver &&
      ::waitid(P_PID, static_cast<id_t>(process_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      ended.si_pid == 0;
  return is_there && shared_->guest_count.load(std::memory_order_relaxed) != 0;
}

void Transfer::await_guests(const std::function<void()>& beat) {
  if (is_needed() && role_here() == Role::kReceiver) start(Role::kReceiver);
  if (role_ != Role::kReceiver) return;
  uint32_t world_size = 0;
  const StateHeader& header = state_.header();
  for (uint32_t i = 0; i < header.process_count.load(std::memory_order_relaxed); ++i)
    world_size = std::max(world_size, state_.process(i).world_size);
  const uint32_t here = header.expected_ranks.load(std::memory_order_relaxed);
  const int64_t until_ms = now_ms() + kFindMs;
  while (here + shared_->guest_ranks.load(std::memory_order_relaxed) < world_size &&
         now_ms() < until_ms) {
    const bool saw_others = sees_others();
    poll(nullptr, 0, 2 * kShortStepMs);
    beat();
    if (saw_others && sees_others()) return;  // the directory is shared
  }
}

bool Transfer::deliver(const std::function<void()>& beat) {
  if (is_needed() && role_here() == Role::kCourier) start(Role::kCourier);
  if (role_ != Role::kCourier) return false;
  end_.reset();
  return wait_for_end(wait_ms(config_), beat);
}

/// Waits for the process to end, and ends it when it takes too long. True: its errand is done.
bool Transfer::wait_for_end(int64_t timeout_ms, const std::function<void()>& beat) {
  const UniqueFd pidfd(proc::open_pidfd(process_));
  const int64_t until_ms = now_ms() + timeout_ms;
  pollfd ended{pidfd.get(), POLLIN, 0};
  while (now_ms() < until_ms && poll(&ended, 1, kStepMs) == 0) beat();
  if (now_ms() >= until_ms) ::kill(process_, SIGKILL);
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  const Role role = std::exchange(role_, Role::kNone);
  const bool is_done = WIFEXITED(status) && WEXITSTATUS(status) == kDelivered;
  if (is_done && role == Role::kCourier && !config_.arguments.options.no_assemble)
    remove_spool_of(config_);
  return is_done;
}

void Transfer::stop() {
  if (process_ <= 0) return;
  end_.reset();
  static_cast<void>(wait_for_end(wait_ms(config_), [] {}));
}

}  // namespace aon::agent
