#include "core/cluster/peers.h"

#include <system_error>
#include <utility>

#include "core/base/log.h"

namespace aon::cluster {

Peers::Peers(const std::string& job_folder, std::string node, clock::TickSource source,
             PingClient::Sink sink)
    : agents_(agents_folder(job_folder)),
      node_(std::move(node)),
      token_(random_token()),
      server_(token_, source),
      client_(agents_, node_, source, std::move(sink)) {}

void Peers::start() {
  if (std::exchange(is_started_, true)) return;
  try {
    client_.start([this] { announce(); });
  } catch (const std::system_error& error) {
    AON_LOG_WARNING("no exchanges with other nodes: %s", error.what());
  }
}

/// On the client's thread: a name server that does not answer must not hold up the caller.
void Peers::announce() {
  std::string problem;
  try {
    const std::vector<Endpoint> endpoints = server_.start(own_addresses());
    if (endpoints.empty()) {
      problem = "no address of this node can be listened on";
    } else if (Status status = write_address(agents_, node_, {token_, endpoints}); !status) {
      problem = status.error().message;
    }
  } catch (const std::system_error& error) {
    problem = error.what();
  }
  if (!problem.empty()) AON_LOG_WARNING("other nodes cannot reach this one: %s", problem.c_str());
}

/// First from the nodes' list, so that nobody new comes; then the last pings, up and down.
void Peers::stop() {
  if (!std::exchange(is_started_, false)) return;
  remove_address(agents_, node_);
  client_.stop();
  remove_address(agents_, node_);  // announced meanwhile
  server_.stop(kLingerMs);
}

}  // namespace aon::cluster
