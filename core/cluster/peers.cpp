#include "core/cluster/peers.h"

#include <system_error>
#include <utility>

#include "core/base/log.h"
#include "core/cluster/meeting.h"

namespace aon::cluster {

namespace {

std::vector<std::string> folders_of(const std::string& job_folder, const std::string& meeting) {
  std::vector<std::string> folders{agents_folder(job_folder)};
  if (!meeting.empty()) folders.push_back(meeting);
  return folders;
}

}  // namespace

Peers::Peers(const std::string& job_folder, const std::string& meeting, std::string node,
             clock::TickSource source, PingClient::Sink sink)
    : folders_(folders_of(job_folder, meeting)),
      node_(std::move(node)),
      token_(random_token()),
      server_(token_, source),
      client_(folders_, node_, source, std::move(sink)) {}

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
    }
    for (size_t i = 0; i < folders_.size() && !endpoints.empty(); ++i) {
      Status status = i == 0 ? Status() : make_meeting_folder(folders_[i]);
      if (status) status = write_address(folders_[i], node_, {token_, endpoints});
      if (!status) problem = status.error().message;
    }
  } catch (const std::system_error& error) {
    problem = error.what();
  }
  if (!problem.empty()) AON_LOG_WARNING("other nodes cannot reach this one: %s", problem.c_str());
}

/// First from the nodes' list, so that nobody new comes; then the last pings, up and down.
void Peers::stop() {
  if (!std::exchange(is_started_, false)) return;
  withdraw();
  client_.stop();
  withdraw();  // announced meanwhile
  server_.stop(kLingerMs);
  if (folders_.size() > 1) leave_meeting_folder(folders_[1]);
}

void Peers::withdraw() {
  for (const std::string& folder : folders_) remove_address(folder, node_);
}

}  // namespace aon::cluster
