#include "core/agent/server.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/agent/message_check.h"
#include "core/agent/span.h"
#include "core/agent/timing.h"
#include "core/base/log.h"

namespace aon::agent {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kStatusWaitNs = 200 * kMs;     ///< for somebody to reap it, or for an exec
constexpr uint64_t kDrainWaitNs = 60'000 * kMs;   ///< for room in staging: the disk hangs
constexpr uint64_t kGraceNs = 50 * kMs;           ///< after the last process
constexpr uint64_t kExpectedWaitNs = 2000 * kMs;  ///< for ranks that were announced
constexpr uint64_t kOrphanWaitNs = 30'000 * kMs;  ///< for the first one
constexpr uint64_t kSilentWaitNs = 1000 * kMs;    ///< for the first word on a connection
constexpr uint32_t kSparePart = 16;  ///< of all streams, for threads of those who are here
const Error kFewDescriptors{Code::kBusy, "few file descriptors are left to the agent"};
const Error kNoPlace{Code::kInvalid,
                     "too many processes, or threads of them, of this launch on one node"};
const Error kNoMore{Code::kUnavailable, "the agent was told to end"};

/// The last worker gave it to the keeper, and may have been killed before it counted it.
void count_kept(std::atomic<uint32_t>* count, uint32_t index) {
  if (count->load(std::memory_order_relaxed) <= index)
    count->store(index + 1, std::memory_order_release);  // pairs with agent:cells
}

}  // namespace

Server::Server(int listen_fd, State* state, Drainer* drainer, KeeperLink* keeper,
               ProcessListener* listener, Following following)
    : listen_fd_(listen_fd),
      state_(state),
      drainer_(drainer),
      keeper_(keeper),
      listener_(listener),
      tick_source_(clock::choose_tick_source()),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      last_event_ns_(monotonic_ns()),
      first_ns_(last_event_ns_),
      following_(following) {
  watch(listen_fd_, kListener, 0, EPOLLIN);
}

void Server::watch(int fd, uint32_t kind, uint32_t number, uint32_t events) {
  epoll_event event{.events = events, .data = {}};
  event.data.u64 = (uint64_t{kind} << 32) | number;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    AON_LOG_ERROR("epoll: %s", strerror(errno));
}

/// Before it is closed: the keeper may hold it, and it would go on telling its end.
void Server::unwatch(int fd) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

void Server::use_bell(const BellWatch& bell) {
  bell_fd_ = bell.page_fd();
  watch(bell.event_fd(), kBell, 0, EPOLLIN | EPOLLET);
}

void Server::watch_signals(int signal_fd) { watch(signal_fd, kSignal, 0, EPOLLIN | EPOLLET); }

void Server::accept_all() {
  for (;;) {
    UniqueFd fd(::accept4(listen_fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd) {
      add_connection(std::move(fd));
    } else if ((errno != EMFILE && errno != ENFILE) || !spare_.send_one_away(listen_fd_)) {
      return;
    } else {
      listener_->process_refused(kFewDescriptors);
    }
  }
}

void Server::adopt(std::vector<Kept> kept) {
  for (Kept& one : kept) {
    std::vector<UniqueFd> copies = std::move(one.descriptors);
    const uint32_t number = one.message.number;
    if (one.message.kind == KeepKind::kWaiter) {
      adopt_waiter(number, std::move(copies[0]), one.message.pid);
      continue;
    }
    if (one.message.kind == KeepKind::kRegistered) {
      count_kept(&state_->header().registered_count, number);
      add_registered(number, std::move(copies[0]));
      continue;
    }
    const uint32_t cell = number - state_->header().first_process;
    const uint32_t phase =
        state_->process(cell).phase.load(std::memory_order_acquire);  // pairs with agent:phase
    if (phase == 0 || phase >= static_cast<uint32_t>(ProcessPhase::kFinished) ||
        copies.size() != 3) {
      keeper_->drop(KeepKind::kProcess, number);
      continue;
    }
    if (Status status = drainer_->attach(cell, std::move(copies[1])); !status) {
      AON_LOG_ERROR("process %u: %s", number, status.error().message.c_str());
      continue;
    }
    count_kept(&state_->header().process_count, cell);
    Process& process = processes_[cell];
    process.cell = cell;
    process.connection = std::move(copies[0]);
    process.pidfd = std::move(copies[2]);
    watch(process.connection.get(), kProcess, cell, EPOLLIN | EPOLLRDHUP);
    if (process.pidfd) watch(process.pidfd.get(), kPidfd, cell, EPOLLIN);
    if (phase >= static_cast<uint32_t>(ProcessPhase::kEnded)) {
      // What the last worker had said of its end may not have been written.
      state_->process(cell).phase.store(static_cast<uint32_t>(ProcessPhase::kEnded),
                                        std::memory_order_relaxed);
      process.ended_ns = monotonic_ns();
    }
    listener_->process_started(number, state_->process(cell).pid_here(),
                               state_->process(cell).rank);
  }
  polled_.adopt(state_->header(), registered_);
  find_busy_again();
}

/// The keeper answers it; here it only may tell how its child has ended.
void Server::adopt_waiter(uint32_t id, UniqueFd fd, int32_t child) {
  Connection& connection = connections_[id];
  connection.fd = std::move(fd);
  connection.is_waiter = true;
  note_child(connection, child);
  watch(connection.fd.get(), kConnection, id, EPOLLIN | EPOLLRDHUP);
}

void Server::poll(uint64_t timeout_ns) {
  epoll_event events[64];
  const int count = wait_for_events(epoll_.get(), events, timeout_ns);
  for (int i = 0; i < count; ++i) {
    const auto kind = static_cast<uint32_t>(events[i].data.u64 >> 32);
    const auto number = static_cast<uint32_t>(events[i].data.u64);
    if (kind == kListener) accept_all();
    if (kind == kProcess) connection_gone(number);
    if (kind == kPidfd) end_process(number);
    if (kind == kRegistered && registered_.count(number) != 0) registered_gone(number);
    if (kind == kConnection) receive(number);
    if (kind == kSignal) has_signal_ = true;
  }
}

/// Gives the newcomer a ring and the keeper its descriptors. False: refused.
bool Server::add_process(const Newcomer& newcomer, UniqueFd connection, UniqueFd pidfd,
                         uint32_t* added) {
  if (have_all_ended_) return refuse(newcomer, connection.get(), kNoMore);
  StateHeader& header = state_->header();
  const uint32_t index = header.process_count.load(std::memory_order_relaxed);
  // Who has no stream has no place for his losses either.
  const uint32_t stream_count = header.stream_count.load(std::memory_order_relaxed);
  const uint32_t most_streams = state_->sizes().streams - state_->sizes().streams / kSparePart;
  if (index >= state_->sizes().processes || stream_count >= most_streams)
    return refuse(newcomer, connection.get(), kNoPlace);
  // The last ones are for files: without them nothing of anybody could be written.
  if (is_among_the_last(std::max(connection.get(), pidfd.get())))
    return refuse(newcomer, connection.get(), kFewDescriptors);
  ProcessCell& cell = state_->process(index);
  cell.process = header.first_process + index;
  cell.pid = newcomer.pid;
  cell.rank.store(newcomer.rank, std::memory_order_relaxed);
  cell.world_size.store(newcomer.world_size, std::memory_order_relaxed);
  cell.exit_code = -1;
  cell.is_followed.store(static_cast<uint32_t>(newcomer.followed), std::memory_order_relaxed);
  cell.is_elsewhere = newcomer.is_elsewhere ? 1 : 0;
  cell.is_in_init.store(newcomer.is_in_init ? 1 : 0, std::memory_order_relaxed);
  cell.start_time_ticks = newcomer.start_time_ticks;
  cell.attach_ticks = clock::now_ticks(tick_source_);
  cell.program.set(newcomer.program);
  auto ring = drainer_->create(index);
  if (!ring) return refuse(newcomer, connection.get(), ring.error());
  const int descriptors[] = {connection.get(), *ring, pidfd ? pidfd.get() : connection.get()};
  if (!keeper_->keep(KeepKind::kProcess, cell.process, cell.pid, descriptors)) {
    drainer_->remove(index);
    return false;
  }
  cell.phase.store(static_cast<uint32_t>(ProcessPhase::kAttached),
                   std::memory_order_release);                       // pairs with agent:phase
  header.process_count.store(index + 1, std::memory_order_release);  // pairs with agent:cells
  note_world(newcomer.world_size);
  Process& process = processes_[index];
  process = {index, std::move(connection), std::move(pidfd), 0, false, false};
  watch_connection(process);
  if (process.pidfd) watch(process.pidfd.get(), kPidfd, index, EPOLLIN);
  listener_->process_started(cell.process, cell.pid_here(), cell.rank);
  *added = index;
  return true;
}

/// A connection that has been watched as one of nobody yet is the process's from now on.
void Server::watch_connection(const Process& process) {
  epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {}};
  event.data.u64 = (uint64_t{kProcess} << 32) | process.cell;
  const int connection = process.connection.get();
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection, &event) != 0)
    watch(connection, kProcess, process.cell, EPOLLIN | EPOLLRDHUP);
}

void Server::note_world(uint32_t world_size) {
  const uint64_t now_ns = monotonic_ns();
  agent::note_world(state_, world_size, now_ns);
  decide_span(state_, now_ns);
}

void Server::add_registered(uint32_t index, UniqueFd pidfd) {
  watch(pidfd.get(), kRegistered, index, EPOLLIN);
  registered_[index] = std::move(pidfd);
}

void Server::registered_gone(uint32_t index) {
  if (const auto found = registered_.find(index); found != registered_.end()) {
    unwatch(found->second.get());
    registered_.erase(found);
  }
  state_->header().registered[index].is_gone = 1;
  busy_.forget(index);
  keeper_->drop(KeepKind::kRegistered, index);
  last_event_ns_ = monotonic_ns();
}

/// A hang-up is the end of a process only where no pidfd tells it: a program may close descriptors
/// that are not its own and go on recording. One that gave up on us records into a file what it is
/// in; one that dies hangs up, too, some time before its pidfd tells, and is still in that call.
void Server::connection_gone(uint32_t cell_index) {
  const auto it = processes_.find(cell_index);
  if (it == processes_.end() || it->second.ended_ns != 0) return;
  Process& process = it->second;
  if (!process.pidfd || proc::has_ended(process.pidfd.get())) {
    end_process(cell_index);
    return;
  }
  if (!proc::is_exiting(process.pidfd.get(), state_->process(cell_index).pid_here()))
    drainer_->withdraw_call(cell_index);
  unwatch(process.connection.get());
}

/// A pid that says Hello again has exec()ed: its earlier image has ended.
void Server::end_earlier_images(int32_t pid) {
  std::vector<uint32_t> earlier;
  for (const auto& [cell, process] : processes_) {
    if (process.ended_ns == 0 && state_->process(cell).pid_here() == pid) earlier.push_back(cell);
  }
  for (const uint32_t cell : earlier) end_process(cell);
}

void Server::end_process(uint32_t cell_index) {
  const auto it = processes_.find(cell_index);
  if (it == processes_.end() || it->second.ended_ns != 0) return;
  Process& process = it->second;
  // Nothing may be said after Hello; a readable connection that is no hang-up is cut off as well.
  ProcessCell& cell = state_->process(cell_index);
  cell.end_ticks = clock::now_ticks(tick_source_);
  cell.phase.store(static_cast<uint32_t>(ProcessPhase::kEnded),
                   std::memory_order_release);  // pairs with agent:phase
  process.ended_ns = monotonic_ns();
  unwatch(process.connection.get());
  if (process.pidfd) unwatch(process.pidfd.get());
  const uint64_t cpu_ns = proc::cpu_time_ns(cell.pid_here());
  if (cpu_ns > cell.cpu_time_ns.load(std::memory_order_relaxed))
    cell.cpu_time_ns.store(cpu_ns, std::memory_order_relaxed);
  last_event_ns_ = process.ended_ns;
}

bool Server::find_status(Process& process, uint64_t now_ns) {
  ProcessCell& cell = state_->process(process.cell);
  std::optional<proc::ExitStatus> status;
  if (process.pidfd && proc::has_ended(process.pidfd.get()))
    status = proc::exit_status(process.pidfd.get(), cell.pid_here(), cell.start_time_ticks);
  if (!status) status = told_exit(cell);
  if (!status) return now_ns - process.ended_ns > kStatusWaitNs;  // exec(), or nobody knows
  cell.exit_code = status->exit_code;
  cell.exit_signal = status->signal;
  return true;
}

std::optional<proc::ExitStatus> Server::told_exit(const ProcessCell& cell) const {
  const auto told = std::find_if(told_exits_.begin(), told_exits_.end(), [&](const auto& one) {
    return one.pid == cell.pid_here() && one.start_time_ticks == cell.start_time_ticks;
  });
  return told != told_exits_.end() ? std::optional(told->status) : std::nullopt;
}

/// True when it is kDrained since now.
bool Server::move_on(Process& process, uint64_t now_ns) {
  ProcessCell& cell = state_->process(process.cell);
  if (!process.has_status) process.has_status = find_status(process, now_ns);
  if (process.has_status && !process.is_drained)
    process.is_drained = drainer_->drain_to_end(process.cell, cell.end_ticks);
  if (!process.is_drained) {
    if (now_ns - process.ended_ns < kDrainWaitNs) return false;
    drainer_->give_up(process.cell, cell.end_ticks);
  }
  cell.crash_place = drainer_->crash_place(process.cell);
  const bool is_fine = cell.exit_signal == 0 && cell.exit_code >= 0;
  listener_->process_ended(cell.process,
                           is_fine ? std::vector<int32_t>() : drainer_->thread_ids(process.cell));
  cell.phase.store(static_cast<uint32_t>(ProcessPhase::kDrained),
                   std::memory_order_release);  // pairs with agent:phase
  process.is_told = true;
  return true;
}

bool Server::advance(uint64_t now_ns) {
  bool is_news = false;
  bool are_all_told = true;
  for (const uint32_t index : polled_.take_ended(now_ns)) registered_gone(index);
  if (!has_signal_) {  // end_all() may have been, and nothing ends a new one
    look_at_busy(now_ns);
    follow_busy();
    look_below(now_ns);
    register_below();
  }
  if (std::exchange(left_event_ns_, last_event_ns_) != last_event_ns_) leave_what_is_below();
  for (auto it = processes_.begin(); it != processes_.end();) {
    Process& process = it->second;
    if (process.ended_ns != 0 && !process.is_told) is_news |= move_on(process, now_ns);
    const ProcessCell& cell = state_->process(process.cell);
    const bool is_finished =
        cell.phase.load(std::memory_order_acquire) ==  // pairs with agent:phase
        static_cast<uint32_t>(ProcessPhase::kFinished);
    // Short programs without counted calls come by the thousand.
    if (!process.is_told || (drainer_->has_counts(process.cell) && !is_finished)) {
      are_all_told &= process.is_told;
      ++it;
      continue;
    }
    drainer_->remove(process.cell);
    keeper_->drop(KeepKind::kProcess, cell.process);
    it = processes_.erase(it);
    last_event_ns_ = now_ns;
  }
  decide_span(state_, now_ns);
  for (auto it = connections_.begin(); it != connections_.end();) {
    const bool is_silent = !it->second.is_waiter && now_ns - it->second.since_ns > kSilentWaitNs;
    it = is_silent ? connections_.erase(it) : std::next(it);
  }
  return is_news && are_all_told && !processes_.empty();
}

bool Server::end_all() {
  bool any_runs_on = false;
  have_all_ended_ = true;
  for (auto& [cell, process] : processes_) {
    if (process.ended_ns != 0) continue;
    process.has_status = !process.pidfd || !proc::has_ended(process.pidfd.get());
    state_->process(cell).is_cut_off = process.has_status ? 1 : 0;
    any_runs_on = any_runs_on || process.has_status;
    end_process(cell);
  }
  return any_runs_on;
}

/// A registered program of elsewhere that has not said Hello: its end is not seen, nor its life.
bool Server::awaits_elsewhere() const {
  const StateHeader& header = state_->header();
  const uint32_t registered_count = header.registered_count.load(std::memory_order_relaxed);
  const uint32_t process_count = header.process_count.load(std::memory_order_relaxed);
  uint32_t registered = 0;
  uint32_t came = 0;
  for (uint32_t i = 0; i < registered_count; ++i) registered += header.registered[i].is_elsewhere;
  for (uint32_t i = 0; registered != 0 && i < process_count; ++i)
    came += state_->process(i).is_elsewhere;
  return registered > came;
}

bool Server::is_over(uint64_t now_ns) const {
  if (!processes_.empty() || !registered_.empty() || !polled_.empty()) return false;
  for (const auto& [id, connection] : connections_) {
    if (!connection.is_waiter && now_ns - connection.since_ns < kGraceNs) return false;
  }
  const StateHeader& header = state_->header();
  const uint32_t registered = header.registered_count.load(std::memory_order_relaxed);
  if (registered == 0 && header.process_count.load(std::memory_order_relaxed) == 0)
    return now_ns - first_ns_ > kOrphanWaitNs;
  const bool is_expecting =
      header.expected_ranks.load(std::memory_order_relaxed) > registered - below_count() ||
      awaits_elsewhere();
  return now_ns - last_event_ns_ > (is_expecting ? kExpectedWaitNs : kGraceNs);
}

}  // namespace aon::agent
