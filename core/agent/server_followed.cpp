// Registered programs, and those of them that are processes without a word of their own.
#include <algorithm>
#include <cstring>
#include <utility>

#include "core/agent/server.h"
#include "core/base/descriptors.h"

namespace aon::agent {
namespace {

constexpr int kMostForebears = 32;  ///< of one process

/// Those that are known already are not asked again: most have the same ones.
void add_forebears(pid_t pid, std::set<pid_t>* forebears) {
  for (int i = 0; i < kMostForebears && pid > 1; ++i) {
    pid = proc::parent_of(pid);
    if (!forebears->insert(pid).second) return;
  }
}

}  // namespace

void Server::register_pid(const Register& message, int32_t peer) {
  StateHeader& header = state_->header();
  const bool is_elsewhere = peer == 0;
  if (message.expected_local_ranks != 0)
    header.expected_ranks.store(message.expected_local_ranks, std::memory_order_relaxed);
  const uint32_t index = header.registered_count.load(std::memory_order_relaxed);
  UniqueFd pidfd(is_elsewhere ? -1 : proc::open_pidfd(message.pid));
  if (pidfd && is_among_the_last(pidfd.get())) pidfd.reset();
  if (index >= kMaxRegistered) return note_world(message.world_size);
  RegisteredPid& registered = header.registered[index];
  registered.pid = message.pid;
  registered.is_elsewhere = is_elsewhere ? 1 : 0;
  registered.rank = message.rank;
  registered.world_size = message.world_size;
  registered.start_time_ticks = is_elsewhere ? 0 : proc::start_time_ticks(message.pid);
  const bool is_watched = pidfd || (!is_elsewhere && polled_.add(index, message.pid));
  registered.is_gone = is_watched ? 0 : 1;
  // Of a PID namespace below this one the peer has a pid here, and what it tells is none.
  const bool may_be_followed =
      following_ == Following::kBusy && is_watched && shares_pid_namespace(peer);
  registered.may_be_followed = may_be_followed ? 1 : 0;
  std::memcpy(registered.program, message.program, sizeof(registered.program));
  registered.program[sizeof(registered.program) - 1] = '\0';
  watch_registered(index, std::move(pidfd));
  note_world(message.world_size);
  if (following_ == Following::kAll && !is_elsewhere) follow(registered, registered.program);
  if (may_be_followed && !is_known(message.pid, registered.start_time_ticks))
    busy_.add(index, message.pid);
}

/// The cell is filled in.
void Server::watch_registered(uint32_t index, UniqueFd pidfd) {
  StateHeader& header = state_->header();
  const int fd = pidfd.get();
  if (pidfd) keeper_->keep(KeepKind::kRegistered, index, header.registered[index].pid, {&fd, 1});
  header.registered_count.store(index + 1, std::memory_order_release);  // pairs with agent:cells
  if (pidfd) add_registered(index, std::move(pidfd));
}

/// A registered program as a process without a connection: its pidfd stands in for one. `program`
/// has ProgramCell::kPathBytes.
void Server::follow(const RegisteredPid& registered, const char* program) {
  UniqueFd pidfd(proc::open_pidfd(registered.pid));
  UniqueFd connection(proc::open_pidfd(registered.pid));
  const uint64_t start_time_ticks = proc::start_time_ticks(registered.pid);
  if (!pidfd || !connection || start_time_ticks != registered.start_time_ticks) return;
  // aon-run may stand before aon-run: the pid is the same.
  if (is_known(registered.pid, start_time_ticks)) return;
  uint32_t cell = kNoCell;
  const Followed how = registered.is_below != 0 ? Followed::kBelow : Followed::kRegistered;
  const Newcomer newcomer{registered.pid,   registered.rank, registered.world_size,
                          start_time_ticks, program,         how};
  add_process(newcomer, std::move(connection), std::move(pidfd), &cell);
}

/// Those that compute and have said no Hello. What has started others of the launch may be a
/// launcher that has much to do: it is asked again when it has used as much of its own.
void Server::look_at_busy(uint64_t now_ns) {
  const std::vector<uint32_t> due = busy_.due(now_ns);
  if (due.empty()) return;
  const std::set<pid_t> forebears = find_forebears();
  std::vector<FollowableLooks::Question> questions;
  for (const uint32_t number : due) {
    busy_.put_off(number);
    const pid_t pid = state_->header().registered[number].pid;
    if (forebears.count(pid) == 0) questions.push_back({number, pid, busy_.refused_image(number)});
  }
  if (questions.empty()) return;
  const auto look = [programs = left_alone_, socket = socket_](pid_t pid) {
    return followable_program(pid, programs, socket);
  };
  looks_.ask(questions, look, now_ns);
}

/// Those that were looked at, but for who has spoken or ended meanwhile, or started others.
void Server::follow_busy() {
  std::vector<FollowableLooks::Answer> answers = looks_.take();
  std::erase_if(answers, [this](const FollowableLooks::Answer& answer) {
    const auto& [program, is_left_alone] = answer.found;
    const bool is_refused = program.empty() || is_left_alone;
    if (is_refused) busy_.refuse(answer.number, answer.image);
    if (is_left_alone) listener_->note(RecordingNote::kLeftAlone, program);
    return is_refused;
  });
  if (answers.empty()) return;
  const std::set<pid_t> forebears = find_forebears();
  for (const FollowableLooks::Answer& answer : answers) {
    if (!busy_.has(answer.number)) continue;
    const RegisteredPid& registered = state_->header().registered[answer.number];
    if (forebears.count(registered.pid) != 0) continue;
    static_cast<void>(busy_.forget_pid(registered.pid));
    char path[ProgramCell::kPathBytes] = {};
    answer.found.program.copy(path, sizeof(path) - 1);
    follow(registered, path);
  }
}

/// Of an earlier worker.
void Server::find_busy_again() {
  const StateHeader& header = state_->header();
  std::set<std::pair<int32_t, uint64_t>> known;
  const uint32_t process_count = header.process_count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < process_count; ++i)
    known.insert({state_->process(i).pid_here(), state_->process(i).start_time_ticks});
  const uint32_t registered_count = header.registered_count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < registered_count; ++i) {
    const RegisteredPid& registered = header.registered[i];
    const bool is_candidate = registered.may_be_followed != 0 && registered.is_gone == 0;
    if (is_candidate && known.count({registered.pid, registered.start_time_ticks}) == 0)
      busy_.add(i, registered.pid);
  }
}

/// From whom live processes and registered programs descend, but for those that are followed for
/// their ancestor's sake. Once for all that are due: ranks that compute before MPI_Init are due
/// together, and who says Hello meanwhile waits.
std::set<pid_t> Server::find_forebears() const {
  std::set<pid_t> forebears;
  for (const auto& [index, process] : processes_) {
    const ProcessCell& cell = state_->process(index);
    const bool is_below =
        cell.is_followed.load(std::memory_order_relaxed) == static_cast<uint32_t>(Followed::kBelow);
    if (process.ended_ns == 0 && !is_below) add_forebears(cell.pid_here(), &forebears);
  }
  const StateHeader& header = state_->header();
  for (const auto& [index, pidfd] : registered_) {
    const RegisteredPid& registered = header.registered[index];
    if (registered.is_below == 0) add_forebears(registered.pid, &forebears);
  }
  return forebears;
}

/// The followed process has said Hello: from here on it is as any other.
bool Server::take_over(uint32_t cell_index, UniqueFd connection, const Hello& hello) {
  ProcessCell& cell = state_->process(cell_index);
  Process& process = processes_.at(cell_index);
  const int descriptors[] = {connection.get(), drainer_->ring_fd(cell_index), process.pidfd.get()};
  if (!keeper_->keep(KeepKind::kProcess, cell.process, cell.pid, descriptors)) return false;
  unwatch(process.connection.get());
  process.connection = std::move(connection);
  // Of one that a launcher below aon-run has started (torchrun), aon-run knew another rank.
  if (cell.is_followed.load(std::memory_order_relaxed) == static_cast<uint32_t>(Followed::kBelow)) {
    cell.rank.store(hello.rank, std::memory_order_relaxed);
    cell.world_size.store(hello.world_size, std::memory_order_relaxed);
    note_world(hello.world_size);
  }
  cell.is_followed.store(0, std::memory_order_relaxed);
  cell.program.set(hello.program);  // what aon-run started may have been a shell
  watch_connection(process);
  return true;
}

bool Server::is_known(int32_t pid, uint64_t start_time_ticks) const {
  return std::any_of(processes_.begin(), processes_.end(), [&](const auto& entry) {
    const ProcessCell& cell = state_->process(entry.first);
    return cell.pid_here() == pid && cell.start_time_ticks == start_time_ticks;
  });
}

/// The kernel says whether it is the same process: what the peer tells of itself may be anything.
uint32_t Server::find_followed(int32_t pid) const {
  for (const auto& [index, process] : processes_) {
    const ProcessCell& cell = state_->process(index);
    if (process.ended_ns == 0 && cell.is_followed.load(std::memory_order_relaxed) != 0 &&
        cell.pid == pid && cell.start_time_ticks == proc::start_time_ticks(pid))
      return index;
  }
  return kNoCell;
}

}  // namespace aon::agent
