/// One node's part in the cluster of its launch: it can be reached (PingServer), it asks the node
/// above it for the time (PingClient), and its address stands in DIR/agents while it is there.
///
/// Only for a launch that spans nodes: a job of one node opens no socket.
/// Thread: start and stop by one; the sink is called from a thread of its own.
/// Errors: what cannot be had (no network, no thread, no address file) is told in the log; the node
/// then has no pings.   Cost of start: that of a thread, whatever name servers do.
#pragma once

#include <memory>
#include <string>

#include "core/cluster/ping_client.h"
#include "core/cluster/ping_server.h"

namespace aon::cluster {

constexpr int kLingerMs = 300;  ///< for the last pings of the nodes below

class Peers {
 public:
  Peers(const std::string& job_folder, std::string node, clock::TickSource source,
        PingClient::Sink sink);
  ~Peers() { stop(); }

  /// Once; further calls do nothing.
  void start();
  void stop();

 private:
  void announce();

  std::string agents_;
  std::string node_;
  Token token_;
  PingServer server_;
  PingClient client_;
  bool is_started_ = false;
};

}  // namespace aon::cluster
