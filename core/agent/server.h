/// Who takes part in the launch: accepts connections, gives processes their rings, follows
/// registered pids, sees the end of each process and of the launch.
///
///     process:  connection --Hello--> kAttached --pidfd, exec()--> kEnded --drained--> kDrained
///               --its end is in the spool--> kFinished: only now a ring with counted calls goes;
///               until then a new worker would begin with it at kEnded
///     aon-run:  connection --Register(pid)--> pid watched until it is gone
///               where its programs say no Hello (MPI calls are not wanted), the pid is a process
///               at once, kAttached and followed; else when it computes and has not said one
///               (busy_programs.h); a Hello that comes all the same takes it over. What it has
///               started is found by the agent, and is registered so (programs_below.h)
///               connection --Wait--> kept until the files are complete (the keeper answers)
///
/// The launch is over when no registered pid and no process is left, and no rank is expected.
/// Messages are untrusted: peers by SO_PEERCRED (same uid), sizes and strings checked. A peer that
/// it gives no pid is in a PID namespace that is not seen here (ranks in containers that share
/// /tmp): the pids it tells may be those of others here, so nothing is asked of them; such a
/// process ends with its connection.
/// Thread: the drain thread.   Cost: one epoll_wait per pass; 200 us per attach.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/agent/bell.h"
#include "core/agent/busy_programs.h"
#include "core/agent/drainer.h"
#include "core/agent/followable.h"
#include "core/agent/followable_looks.h"
#include "core/agent/handover.h"
#include "core/agent/polled_pids.h"
#include "core/agent/proc.h"
#include "core/agent/programs_below.h"
#include "core/agent/protocol.h"
#include "core/agent/recording_notes.h"
#include "core/agent/state.h"
#include "core/base/descriptors.h"
#include "core/base/unique_fd.h"
#include "core/clock/snapshot.h"

namespace aon::agent {

/// Told about processes; called by the drain thread.
class ProcessListener {
 public:
  virtual ~ProcessListener() = default;
  virtual void process_started(uint32_t process, int32_t pid, int32_t rank) = 0;
  /// `tids`: of its threads, as the process said, where it may have died of a fault.
  virtual void process_ended(uint32_t process, std::vector<int32_t> tids) = 0;
  /// The ledger is to say it, of a program if there is one; again and again is the same.
  virtual void note(RecordingNote /*note*/, const std::string& /*program*/) {}
  /// A process got no ring: it records into a file.
  virtual void process_refused(const Error& /*reason*/) {}
};

class Server {
 public:
  /// `following`: which registered pids are processes without Hello.
  Server(int listen_fd, State* state, Drainer* drainer, KeeperLink* keeper,
         ProcessListener* listener, Following following);

  /// Sends `programs` away when they say Hello.
  void leave_alone(std::vector<std::string> programs) { left_alone_ = std::move(programs); }
  /// The path that programs are told, where it is known.
  void is_at(std::string socket) { socket_ = std::move(socket); }
  /// Takes over what the keeper holds from an earlier worker.
  void adopt(std::vector<Kept> kept);

  /// Wakes poll() when a signal is pending on `signal_fd`.
  void watch_signals(int signal_fd);
  bool has_signal() const noexcept { return has_signal_; }
  /// Before the first process: gives it to them, and poll() returns when one rings.
  void use_bell(const BellWatch& bell);

  /// Handles what happened; waits at most `timeout_ns` for it.
  void poll(uint64_t timeout_ns);
  /// Moves ended processes on: drains them, finds their exit status. True when all that are left
  /// wait for the spool, and one of them since now.
  bool advance(uint64_t now_ns);
  /// Treats all processes as ended (SIGTERM), and sends away who comes from here on: nothing would
  /// end him. True: some run on, and nobody sees their end.
  bool end_all();

  bool is_over(uint64_t now_ns) const;
  bool has_live_processes() const noexcept { return !processes_.empty(); }

 private:
  enum EventKind : uint32_t {
    kListener,
    kProcess,
    kPidfd,
    kRegistered,
    kConnection,
    kSignal,
    kBell
  };
  struct Process {
    uint32_t cell;
    UniqueFd connection;
    UniqueFd pidfd;
    uint64_t ended_ns = 0;  ///< 0: it lives
    bool is_drained = false;
    bool has_status = false;
    bool is_told = false;  ///< kDrained
  };
  /// Who a process is, from its Hello or from aon-run.
  struct Newcomer {
    int32_t pid;
    int32_t rank;
    uint32_t world_size;
    uint64_t start_time_ticks;
    const char* program;
    Followed followed;
    bool is_in_init = false;
    bool is_elsewhere = false;
  };
  /// Who connected, as the kernel says.
  struct Peer {
    int32_t pid = 0;  ///< 0: it has none here
    uint64_t start_time_ticks = 0;
    std::string program;  ///< that it ran when it came; empty: it had ended
  };
  struct Connection {
    UniqueFd fd;
    bool is_waiter = false;
    bool has_spoken = false;
    Peer peer;
    uint64_t since_ns = 0;
    int32_t registered_pid = 0;
    int32_t child_pid = 0;  ///< whose end a waiter may tell, once; 0 none
    uint64_t child_start_ticks = 0;
  };
  /// What a parent said of its child.
  struct ToldExit {
    int32_t pid;
    uint64_t start_time_ticks;
    proc::ExitStatus status;
  };

  void watch(int fd, uint32_t kind, uint32_t number, uint32_t events);
  void unwatch(int fd);
  void accept_all();
  void add_connection(UniqueFd fd);
  void note_if_killed(int connection, const Peer& peer, bool is_killed);
  void receive(uint32_t id);
  bool handle(uint32_t id, Connection& connection, const uint8_t* bytes, size_t byte_count);
  void note_child(Connection& connection, int32_t pid);
  void take_exit(Connection& connection, const Exited& message);
  std::optional<proc::ExitStatus> told_exit(const ProcessCell& cell) const;
  void adopt_waiter(uint32_t id, UniqueFd fd, int32_t child);
  bool is_left_alone(const Connection& connection, const Hello& hello);
  bool attach(uint32_t id, Connection& connection, const Hello& hello);
  bool refuse(const Newcomer& newcomer, int connection, const Error& reason);
  bool add_process(const Newcomer& newcomer, UniqueFd connection, UniqueFd pidfd, uint32_t* cell);
  bool take_over(uint32_t cell, UniqueFd connection, const Hello& hello);
  void watch_connection(const Process& process);
  void welcome(uint32_t cell);
  void follow(const RegisteredPid& registered, const char* program);
  void look_at_busy(uint64_t now_ns);
  void follow_busy();
  void find_busy_again();
  void look_below(uint64_t now_ns);
  void register_below();
  uint32_t below_count() const;
  void leave_what_is_below();
  std::set<pid_t> find_forebears() const;
  uint32_t find_followed(int32_t pid) const;
  bool is_known(int32_t pid, uint64_t start_time_ticks) const;
  void register_pid(const Register& message, int32_t peer);
  void note_world(uint32_t world_size);
  void watch_registered(uint32_t index, UniqueFd pidfd);
  void add_registered(uint32_t index, UniqueFd pidfd);
  void registered_gone(uint32_t index);
  bool awaits_elsewhere() const;
  void connection_gone(uint32_t cell);
  void end_earlier_images(int32_t pid);
  void end_process(uint32_t cell);
  bool find_status(Process& process, uint64_t now_ns);
  bool move_on(Process& process, uint64_t now_ns);

  int listen_fd_;
  SpareDescriptor spare_;
  int bell_fd_ = -1;
  State* state_;
  Drainer* drainer_;
  KeeperLink* keeper_;
  ProcessListener* listener_;
  clock::TickSource tick_source_;
  UniqueFd epoll_;
  std::map<uint32_t, Process> processes_;       ///< by cell
  std::map<uint32_t, Connection> connections_;  ///< not (yet) of a process
  std::map<uint32_t, UniqueFd> registered_;     ///< live ones, by index in the state
  PolledPids polled_;                           ///< registered, too
  BusyPrograms busy_;                           ///< the same, for they have said no Hello
  FollowableLooks looks_;                       ///< at some of these
  ProgramsBelow below_;
  uint64_t left_event_ns_ = 0;        ///< last_event_ns_ when leave_what_is_below() was last called
  std::vector<ToldExit> told_exits_;  ///< one of a waiter
  uint64_t last_event_ns_ = 0;
  uint64_t first_ns_ = 0;
  bool has_signal_ = false;
  bool have_all_ended_ = false;
  Following following_;
  std::vector<std::string> left_alone_;
  std::string socket_;
};

}  // namespace aon::agent
