#include "core/cluster/peers.h"

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
  const std::vector<Endpoint> endpoints = server_.start(own_addresses());
  if (endpoints.empty()) problem_ = "no address of this node can be listened on";
  if (!endpoints.empty()) {
    if (Status status = write_address(agents_, node_, {token_, endpoints}); !status)
      problem_ = status.error().message;
  }
  if (!problem_.empty()) AON_LOG_WARNING("other nodes cannot reach this one: %s", problem_.c_str());
  client_.start();
}

/// First from the nodes' list, so that nobody new comes; then the last pings, up and down.
void Peers::stop() {
  if (!std::exchange(is_started_, false)) return;
  remove_address(agents_, node_);
  client_.stop();
  server_.stop(kLingerMs);
}

}  // namespace aon::cluster
