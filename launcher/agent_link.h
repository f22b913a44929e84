/// The way from aon-run to the agent of its node: who starts it, how ranks register, how one waits.
///
///     aon-run, any rank                     lock file              socket
///     connect ------------------------------------------------------> agent answers: joined
///        '-- nobody listens: flock, no wait
///                 got it ---> unlink + bind + listen, spawn aon-agent with both descriptors:
///                 started held ----> the winner binds within microseconds: connect again
///
/// The lock belongs to the open file, so the agent holds it until it closes the descriptor: it does
/// so when it accepts no more ranks, after removing lock file and socket. A lock taken on a file
/// that was removed meanwhile is recognised and taken again.
/// Sockets are in the runtime folder (runtime_folder.h): 0700, owned by the user, no link.
///
/// Thread: one.   Cost: 3 system calls for a rank that joins; about 1 ms for the one that starts.
/// Errors: every failure is ours; the program then runs without an agent.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "core/agent/protocol.h"
#include "core/base/options.h"
#include "core/base/result.h"
#include "core/base/unique_fd.h"

namespace aon::launcher {

/// Path of the socket of (`launch_id`, `output`) on this node. Makes no file.
std::string socket_path(const std::string& launch_id, const std::string& output);

struct AgentLink {
  std::string socket;   ///< its path
  UniqueFd connection;  ///< set when another process had started the agent
  UniqueFd listener;    ///< set when this one has to
  UniqueFd lock;
};

/// Connects, or becomes the one that starts the agent.
/// Errors: kBusy where somebody listens, and as many wait for him as the system lets wait
/// (net.core.somaxconn, 128 before Linux 5.4).
Result<AgentLink> join_or_listen(const std::string& socket);

/// Removes sockets and locks that killed agents and waiters left in `folder`, and old notes for an
/// Epilog: batch systems kill what is left of a job, and some folders live until the node starts
/// again. Called by spawn_agent().
/// Cost: some system calls for each lock, waiter and old note, of a thousand at most, one for each
/// other note.
void remove_leftovers(const std::string& folder);

/// Whether an agent of so many ranks (0 unknown) can open what it needs. One that ran out half-way
/// would lose records; without one, each rank writes a file of its own.
Status check_descriptor_limit(uint32_t local_rank_count);

/// Starts `agent` with the link's listener and lock, in a session of its own, without waiting.
/// Returns its pid.
Result<pid_t> spawn_agent(const std::string& agent, AgentLink& link, AgentArguments arguments);

/// The last error in the log that the agent of this node, process `agent`, keeps in `output`: why
/// it ended early. Empty where it has none, as after a SIGKILL.
std::string last_words_of_agent(const std::string& output, pid_t agent);

/// A socket of `type` with this path, for the user alone; what had the path before is gone.
/// Errors: kUnavailable.
Result<UniqueFd> bind_socket(int type, const std::string& path);

/// One connection attempt, without waiting.
Result<UniqueFd> connect_agent(const std::string& socket);

/// What the agent is told of the program that aon-run becomes.
struct Registration {
  pid_t pid = -1;
  uint32_t expected_local_ranks = 0;  ///< 0 unknown
  std::string program;                ///< path
};

/// Tells the agent to watch a program, with the rank that this process's environment gives it. No
/// reply.
Status send_register(int connection, const Registration& registration);

/// Asks for a Done once the files are complete.
Status send_wait(int connection);

/// Tells the agent how a child that was registered on `connection`, which waits, has ended.
Status send_exited(int connection, pid_t child, int wait_status);

}  // namespace aon::launcher
