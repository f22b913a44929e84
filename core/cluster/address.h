/// Where the agent of a node can be reached, for the agents of the other nodes of its launch:
/// DIR/agents/NODE.address, 0600, written by the agent when its launch spans nodes.
///
///     aon-agent 1
///     token 64 hexadecimal digits
///     at 10.0.0.1 40123
///     at ...
///
/// The token is random and secret: who can read the file is the job's user (or root). It never
/// travels over the network (handshake.h).
/// Thread: any.   Cost: a few file operations.   Errors: kNotFound; kInvalid for a file that
/// another user could have written or that is none of ours; kIo.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/unique_fd.h"

namespace aon::cluster {

using Token = std::array<uint8_t, 32>;

struct Endpoint {
  std::string host;  ///< numeric, IPv4 or IPv6
  uint16_t port;
};

struct AgentAddress {
  Token token;
  std::vector<Endpoint> endpoints;
};

/// Makes `folder` with mode 0700, or gives it this mode. Errors: kInvalid when it is there and not
/// this user's, or the file system keeps others' rights.
Status make_private_folder(const std::string& folder);
/// DIR/agents, made with mode 0700.
Status make_agents_folder(const std::string& job_folder);
std::string agents_folder(const std::string& job_folder);

Status write_address(const std::string& agents, const std::string& node,
                     const AgentAddress& address);
void remove_address(const std::string& agents, const std::string& node);
Result<AgentAddress> read_address(const std::string& agents, const std::string& node);
/// Names of the nodes that have an address now, sorted.
std::vector<std::string> list_nodes(const std::string& agents);

/// 32 bytes of the kernel's random numbers: getrandom(), /dev/urandom, and where a filter of system
/// calls forbids both, made of the ones this program was started with.
Token random_token();

/// The addresses other nodes may know this one by: those its own name stands for, else those of its
/// interfaces that are up, without loopback and virtual bridges; loopback when there is nothing
/// else. At most kMaxEndpoints, none link-local.
std::vector<std::string> own_addresses();
/// `address` as text; empty for one of another kind and for one that says nothing beyond its link:
/// the interface to a node's own management controller has one.
std::string numeric(const sockaddr* address);
constexpr size_t kMaxEndpoints = 4;

/// Listens on a free port of `host`. Non-blocking.
Result<UniqueFd> listen_on(const std::string& host, uint16_t* port);
/// Connects within `timeout_ms`; the descriptor is blocking, without Nagle's delay.
Result<UniqueFd> connect_to(const Endpoint& endpoint, int timeout_ms);

}  // namespace aon::cluster
