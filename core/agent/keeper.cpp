#include "core/agent/keeper.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

#include "core/agent/bell.h"
#include "core/agent/finish.h"
#include "core/agent/folder_scan.h"
#include "core/agent/handover.h"
#include "core/agent/proc.h"
#include "core/agent/protocol.h"
#include "core/agent/span.h"
#include "core/agent/timing.h"
#include "core/agent/transfer.h"
#include "core/agent/worker.h"
#include "core/base/lease.h"
#include "core/base/log.h"
#include "core/cluster/address.h"
#include "core/cluster/presence.h"

namespace aon::agent {
namespace {

constexpr int kMaxFruitlessStarts = 100;  ///< workers in a row that died without doing anything
constexpr int kFirstPauseAfter = 8;       ///< such workers
constexpr int kPauseMs = 50;
constexpr int kLongestPauseMs = 1000;  ///< when not even a worker can be made, or a lease be had
constexpr uint64_t kWorkerSilentNs = 30'000'000'000;
constexpr uint64_t kLastStepsNs = 5'000'000'000;  ///< of a worker that has written everything
constexpr int kUnsettledMs = 200;                 ///< until it is known where the spool goes
constexpr int kGuestStepMs = 500;
constexpr int kGuestPatience = 4;   ///< such steps
constexpr int kMostGuestTries = 3;  ///< archives that fail, while guests wait

class Keeper {
 public:
  Keeper(const Config& config, std::optional<Lease> lease)
      : config_(config), taken_lease_(std::move(lease)), transfer_(config_, state_) {}
  Status prepare();
  int run();

 private:
  Result<pid_t> start_worker();
  Status pause_after_failure(const Error& error, int failed_count);
  /// Grows with every commit and every drained record.
  uint64_t work_done() const noexcept {
    return state_.commit() + state_.header().staging_head.load(std::memory_order_relaxed);
  }
  bool serve_worker(pid_t worker, int* exit_code);
  bool take_message();
  void drop(KeepKind kind, uint32_t number);
  bool take_signals(pid_t worker);
  bool is_beat_due() const;
  bool is_worker_silent() const;
  bool cannot_end(pid_t worker);
  void keep_lease();
  void await_lease();
  bool is_worth_waiting(const Error& error);
  void follow_folder();
  void account_dead_worker(pid_t worker);
  void account_own();
  AssembleOutcome finish();
  AssembleOutcome finish_here();
  void serve_guests();
  bool is_told_to_end();
  bool is_reporter() const;
  void answer_waiters(const AssembleOutcome& outcome);

  Config config_;
  UniqueFd listener_;
  UniqueFd lock_;
  UniqueFd folder_;
  UniqueFd state_fd_;
  UniqueFd staging_fd_;
  UniqueFd bell_fd_;
  UniqueFd signals_;
  UniqueFd link_;  ///< our end of the worker's socketpair
  State state_;
  std::string told_folder_;           ///< where the job was before it was moved, or empty
  std::optional<Lease> taken_lease_;  ///< before there was a keeper
  Lease lease_;
  bool has_lease_ = false;
  std::optional<Lease> waiting_lease_;  ///< an earlier agent has the other one
  int lease_pause_ms_ = kPauseMs;       ///< between tries to have it
  bool is_awaited_ = false;             ///< an earlier agent has had it
  std::optional<std::chrono::steady_clock::time_point> unknown_since_;  ///< who has it now
  std::chrono::steady_clock::time_point last_beat_;
  bool is_hung_ = false;  ///< the assembly, so that there will be none
  uint64_t done_ns_ = 0;  ///< when the worker was seen to have written everything; 0: not yet
  std::vector<Kept> kept_;
  Transfer transfer_;
};

Status Keeper::prepare() {
  listener_.reset(config_.arguments.listen_fd);
  lock_.reset(config_.arguments.lock_fd);
  auto folder = open_spool_folder(config_);
  if (!folder) return folder.error();
  folder_ = std::move(*folder);
  // Without it there is no lease, and other nodes do not see this one; recording goes on.
  if (Status status = cluster::make_agents_folder(config_.job_folder); !status)
    AON_LOG_WARNING("%s", status.error().message.c_str());
  auto state_fd = State::create(config_.file_limit_bytes);
  if (!state_fd) return state_fd.error();
  state_fd_ = std::move(*state_fd);
  auto staging_fd = Staging::create(config_.staging_bytes);
  if (!staging_fd) return staging_fd.error();
  staging_fd_ = std::move(*staging_fd);
  auto bell_fd = BellWatch::create();
  if (!bell_fd) return bell_fd.error();
  bell_fd_ = std::move(*bell_fd);
  auto state = State::map(state_fd_.get());
  if (!state) return state.error();
  state_ = *state;
  state_.header().magic = kStateMagic;
  state_.header().first_process = next_process_number(config_.folder);
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  keep_lease();
  return {};
}

bool Keeper::is_beat_due() const {
  const std::chrono::milliseconds period(has_lease_ ? kLeaseBeatSeconds * 1000 : lease_pause_ms_);
  return std::chrono::steady_clock::now() - last_beat_ >= period;
}

bool Keeper::is_worker_silent() const {
  const uint64_t turn_ns = state_.header().worker_turn_ns.load(std::memory_order_relaxed);
  const uint64_t now_ns = monotonic_ns();
  return turn_ns != 0 && now_ns > turn_ns && now_ns - turn_ns > kWorkerSilentNs;
}

/// It is done, and a thread of it hangs in a driver (a GPU that fell off its bus), where not even
/// SIGKILL ends it: nobody waits for that.
bool Keeper::cannot_end(pid_t worker) {
  const uint32_t done =
      state_.header().worker_done.load(std::memory_order_acquire);  // pairs with agent:done
  if (done == 0) return false;
  if (done_ns_ == 0) done_ns_ = monotonic_ns();
  if (monotonic_ns() - done_ns_ < kLastStepsNs) return false;
  AON_LOG_WARNING("worker %d has written everything and does not end", worker);
  ::kill(worker, SIGKILL);
  return true;
}

/// A job directory that is moved meanwhile is where its spool is now.
void Keeper::follow_folder() {
  const std::optional<std::string> folder = moved_folder(config_, folder_.get());
  if (!folder) return;
  if (told_folder_.empty()) told_folder_ = config_.job_folder;
  config_.job_folder = *folder;
  config_.folder = *folder + "/spool/" + config_.node;
  lease_.moved_to(cluster::agent_lease(config_.job_folder, config_.node));
  if (waiting_lease_)
    waiting_lease_->moved_to(cluster::waiting_lease(config_.job_folder, config_.node));
}

void Keeper::keep_lease() {
  last_beat_ = std::chrono::steady_clock::now();
  follow_folder();
  if (has_lease_) {
    // A node whose records nobody takes any more is as good as lost, until its worker goes on.
    if (!is_worker_silent()) lease_.beat();
    return;
  }
  Result<Lease> lease = taken_lease_
                            ? Result<Lease>(std::move(*taken_lease_))
                            : Lease::take(cluster::agent_lease(config_.job_folder, config_.node));
  taken_lease_.reset();
  if (!lease) {
    if (is_worth_waiting(lease.error())) return await_lease();
    AON_LOG_WARNING("lease: %s%s", lease.error().message.c_str(),
                    is_awaited_ ? "; the earlier agent is not waited for any more" : "");
  } else {
    lease_ = std::move(*lease);
    cluster::clear_done(config_.job_folder, config_.node);  // an earlier agent's
  }
  has_lease_ = true;
  waiting_lease_.reset();
  state_.header().has_lease.store(1, std::memory_order_release);  // pairs with agent:lease
}

/// Where an earlier agent had it, a look that fails says nothing of that one: the directory may
/// just have been moved, a descriptor not be had, a server be gone for a moment.
bool Keeper::is_worth_waiting(const Error& error) {
  if (error.code == Code::kBusy) {
    is_awaited_ = true;
    unknown_since_.reset();
    return true;
  }
  if (!is_awaited_) return false;
  if (!unknown_since_) unknown_since_ = last_beat_;
  return last_beat_ - *unknown_since_ < std::chrono::seconds(kLeaseDeadSeconds);
}

/// An earlier agent of this node still finishes: it is to leave the spool, which is ours, too. So
/// is one of another node that makes the archive of all, and goes by the age of the file. It may
/// take an hour: each try is some operations of a file system that all nodes may share.
void Keeper::await_lease() {
  lease_pause_ms_ = std::min(2 * lease_pause_ms_, kLongestPauseMs);
  if (waiting_lease_ && waiting_lease_->beat()) return;
  Result<Lease> lease = Lease::take(cluster::waiting_lease(config_.job_folder, config_.node));
  if (lease) waiting_lease_ = std::move(*lease);
}

Result<pid_t> Keeper::start_worker() {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
    return Error{Code::kUnavailable, std::string("no sockets for a worker: ") + strerror(errno)};
  UniqueFd ours(pair[0]);
  UniqueFd theirs(pair[1]);
  ++state_.header().worker_count;
  state_.header().worker_turn_ns.store(0, std::memory_order_relaxed);
  state_.header().worker_done.store(0, std::memory_order_relaxed);
  done_ns_ = 0;
  const pid_t pid = ::fork();
  if (pid < 0) {
    --state_.header().worker_count;
    return Error{Code::kUnavailable, std::string("cannot fork a worker: ") + strerror(errno)};
  }
  if (pid != 0) {
    link_ = std::move(ours);
    return pid;
  }
  ours.reset();
  link_.reset();
  lock_.reset();
  lease_.forget();
  if (waiting_lease_) waiting_lease_->forget();
  // A SIGTERM that we pass on may come before the worker looks for one.
  sigset_t later;
  sigemptyset(&later);
  sigaddset(&later, SIGTERM);
  ::sigprocmask(SIG_SETMASK, &later, nullptr);
  WorkerInputs inputs{&config_,       listener_.get(), state_fd_.get(),   staging_fd_.get(),
                      bell_fd_.get(), folder_.get(),   std::move(theirs), &kept_};
  ::_exit(run_worker(std::move(inputs)));
}

void Keeper::drop(KeepKind kind, uint32_t number) {
  std::erase_if(kept_, [&](const Kept& kept) {
    return kept.message.kind == kind && kept.message.number == number;
  });
}

/// Handles one message. False: there is none.
bool Keeper::take_message() {
  Kept kept;
  const ssize_t got =
      receive_packet(link_.get(), {reinterpret_cast<uint8_t*>(&kept.message), sizeof(kept.message)},
                     &kept.descriptors, MSG_DONTWAIT);
  if (got == 0) link_.reset();
  if (got != static_cast<ssize_t>(sizeof(kept.message))) return false;
  const KeepMessage message = kept.message;
  drop(message.kind, message.number);
  if (message.action != KeepAction::kKeep) return true;
  const uint32_t answer = kept.descriptors.empty() ? 0 : 1;
  if (answer == 1) kept_.push_back(std::move(kept));
  send_struct(link_.get(), answer);
  return true;
}

/// Reads pending signals. True: the worker has ended.
bool Keeper::take_signals(pid_t worker) {
  signalfd_siginfo info{};
  bool has_ended = false;
  while (::read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo == SIGCHLD) {
      siginfo_t child{};
      ::waitid(P_PID, static_cast<id_t>(worker), &child, WEXITED | WNOHANG | WNOWAIT);
      has_ended = has_ended || child.si_pid == worker;
    } else {
      ::kill(worker, SIGTERM);
    }
  }
  return has_ended;
}

void Keeper::account_dead_worker(pid_t worker) {
  // Its zombie still shows what it used; the budget must not forget it.
  state_.header().dead_workers_cpu_ns += proc::cpu_time_ns(worker);
}

void Keeper::account_own() {
  std::atomic<uint64_t>& told_ns = state_.header().keeper_cpu_ns;
  const uint64_t now_ns = proc::own_cpu_time_ns() + transfer_.cpu_time_ns();
  told_ns.store(std::max(now_ns, told_ns.load(std::memory_order_relaxed)),
                std::memory_order_relaxed);
}

/// True: the worker has ended by itself; `exit_code` is its own.
bool Keeper::serve_worker(pid_t worker, int* exit_code) {
  for (;;) {
    pollfd fds[2] = {{signals_.get(), POLLIN, 0}, {link_.get(), POLLIN, 0}};
    const int timeout_ms = !has_lease_              ? lease_pause_ms_
                           : transfer_.is_settled() ? kLeaseBeatSeconds * 1000
                                                    : kUnsettledMs;
    ::poll(fds, link_ ? 2 : 1, timeout_ms);
    if (is_beat_due()) keep_lease();
    if (has_lease_) transfer_.advance();
    if (link_ && fds[1].revents != 0) take_message();
    account_own();
    const bool has_ended = fds[0].revents != 0 && take_signals(worker);
    if (!has_ended && !cannot_end(worker)) continue;
    while (link_ && take_message()) {
    }
    account_dead_worker(worker);
    if (!has_ended) {
      *exit_code =
          static_cast<int>(state_.header().worker_done.load(std::memory_order_relaxed)) - 1;
      return true;
    }
    int status = 0;
    while (::waitpid(worker, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status)) return false;
    *exit_code = WEXITSTATUS(status);
    return true;
  }
}

/// What there is of processes and records waits here and in the rings, until there is a process or
/// descriptor more; signals wait, too, for the worker that they are passed on to.
/// Errors: there was no worker yet: nobody should wait for one.
Status Keeper::pause_after_failure(const Error& error, int failed_count) {
  if (failed_count == 1) AON_LOG_ERROR("%s", error.message.c_str());
  if (state_.header().worker_count == 0) return error;
  ::usleep(1000u * std::min(kPauseMs << std::min(failed_count - 1, 5), kLongestPauseMs));
  if (is_beat_due()) keep_lease();
  if (has_lease_) transfer_.advance();
  return {};
}

int Keeper::run() {
  int fruitless = 0;
  int failed_count = 0;  ///< starts in a row
  int exit_code = 1;
  for (;;) {
    const uint64_t done_before = work_done();
    const Result<pid_t> worker = start_worker();
    failed_count = worker ? 0 : failed_count + 1;
    if (!worker && !pause_after_failure(worker.error(), failed_count)) return 1;
    if (worker && serve_worker(*worker, &exit_code)) break;
    fruitless = work_done() == done_before ? fruitless + 1 : 0;
    if (worker) AON_LOG_WARNING("worker %d was killed; starting another", *worker);
    if (fruitless > kMaxFruitlessStarts) {
      AON_LOG_ERROR("%d workers in a row did nothing before their end", fruitless);
      return 1;
    }
    if (worker && fruitless > kFirstPauseAfter) ::usleep(kPauseMs * 1000);
  }
  listener_.reset();
  lock_.reset();
  decide_span(&state_, kAtTheEnd);
  const AssembleOutcome outcome =
      exit_code == 0 ? finish() : AssembleOutcome{false, "the agent could not write its spool"};
  // Who waited may finish it anew, or use its folder again, as soon as he is told.
  // What is said of guests later needs the log.
  if (!transfer_.has_guests()) {
    lease_.release();
    remove_empty_log(config_);
  }
  answer_waiters(outcome);
  serve_guests();
  transfer_.stop();
  lease_.release();
  ::rmdir(cluster::agents_folder(config_.job_folder).c_str());  // goes when nothing is in it
  return exit_code;
}

/// Where nodes share no directory, on that of rank 0.
AssembleOutcome Keeper::finish() {
  const auto beat = [this] { keep_lease(); };
  if (transfer_.deliver(beat)) return {true, ""};
  transfer_.await_guests(beat);
  return finish_here();
}

/// Nobody waits any more, but other nodes may still record, and bring it here; or they brought it
/// while the archive was made.
void Keeper::serve_guests() {
  int patience = kGuestPatience;
  for (int failed = 0; failed < kMostGuestTries && !is_hung_ && transfer_.has_guests();) {
    pollfd signals{signals_.get(), POLLIN, 0};
    if (::poll(&signals, 1, kGuestStepMs) > 0 && is_told_to_end()) return;
    if (is_beat_due()) keep_lease();
    if (config_.arguments.options.no_assemble || transfer_.has_open_guests()) continue;
    if (--patience > 0) continue;  // the archive may have them, and they be told just now
    failed = finish_here().is_complete ? 0 : failed + 1;
    patience = kGuestPatience;
  }
}

bool Keeper::is_told_to_end() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo != SIGCHLD) return true;
  }
  return false;
}

AssembleOutcome Keeper::finish_here() {
  const bool spans_nodes = state_.header().spans_nodes.load(std::memory_order_relaxed) != 0;
  follow_folder();
  AssembleOutcome outcome = finish_launch(config_, spans_nodes, &lease_, [this] { keep_lease(); });
  is_hung_ = outcome.is_hung;
  if (outcome.is_complete && !told_folder_.empty())
    return {false, told_folder_ + " was moved meanwhile: the files are in " + config_.job_folder};
  return outcome;
}

/// Of all nodes, the one of rank 0 tells the user.
bool Keeper::is_reporter() const {
  if (state_.header().spans_nodes.load(std::memory_order_relaxed) == 0) return true;
  bool has_rank = false;
  for (uint32_t i = 0; i < state_.header().process_count.load(std::memory_order_relaxed); ++i) {
    const int32_t rank = state_.process(i).rank;
    if (rank == 0) return true;
    has_rank = has_rank || rank > 0;
  }
  return !has_rank;
}

void Keeper::answer_waiters(const AssembleOutcome& outcome) {
  Done done{};
  done.header = {kProtocolMagic, kProtocolVersion, MessageType::kDone, sizeof(Done)};
  if (outcome.is_complete) done.complete = is_reporter() ? kDoneReport : kDoneElsewhere;
  outcome.text.copy(done.text, sizeof(done.text) - 1);
  for (const Kept& kept : kept_) {
    if (kept.message.kind == KeepKind::kWaiter) send_struct(kept.descriptors[0].get(), done);
  }
}

}  // namespace

std::string log_path(const Config& config) {
  return config.job_folder + "/agent." + config.node + ".log";
}

void remove_empty_log(const Config& config) {
  const std::string log = log_path(config);
  struct stat status {};
  if (::stat(log.c_str(), &status) == 0 && status.st_size == 0) ::unlink(log.c_str());
}

int run_keeper(const Config& config, std::optional<Lease> lease) {
  Keeper keeper(config, std::move(lease));
  if (Status status = keeper.prepare(); !status) {
    AON_LOG_ERROR("%s", status.error().message.c_str());
    return 1;
  }
  return keeper.run();
}

}  // namespace aon::agent
