#include "core/delivery/marks.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/cluster/address.h"

namespace aon::delivery {
namespace {

/// Token of the leases that are kept for couriers; ends the text of their marks.
constexpr const char* kDelivered = "delivered";

}  // namespace

bool is_mark_of_guest(const std::string& job_folder, const cluster::NodePresence& node) {
  if (node.presence == cluster::Presence::kDone && !node.token.empty())
    return node.token.ends_with(kDelivered);
  const std::optional<LeaseOwner> lease = read_lease(cluster::agent_lease(job_folder, node.node));
  if (lease) return lease->token == kDelivered;
  const auto nodes = cluster::read_presence(job_folder);
  return std::any_of(nodes.begin(), nodes.end(), [&](const cluster::NodePresence& one) {
    return one.node == node.node && one.token.ends_with(kDelivered);
  });
}

std::string Marks::agent_name(const LeaseOwner& owner) {
  return owner.host + " " + std::to_string(owner.pid) + " " +
         std::to_string(owner.start_time_ticks);
}

bool Marks::is_kept_for(const LeaseOwner& held, const std::string& node, const std::string& agent) {
  return held.token == kDelivered &&
         agent_name({node, held.pid, held.start_time_ticks, {}, true}) == agent;
}

Marks::Marks(std::string job_folder, LeaseOwner owner, uint64_t number)
    : job_folder_(std::move(job_folder)), owner_(std::move(owner)), mark_name_(owner_.host) {
  owner_.token = kDelivered;
  text_ = agent_name(owner_) + " " + std::to_string(number) + " " + kDelivered;
}

std::string Marks::lease() const { return cluster::agent_lease(job_folder_, owner_.host); }

bool Marks::is_own(const LeaseOwner& held) const {
  return is_kept_for(held, owner_.host, agent_name(owner_));
}

std::optional<LeaseOwner> Marks::held() const { return read_lease(lease()); }

Status Marks::take_lease() {
  if (Status status = write_lease_of(lease(), owner_); !status) return status;
  has_lease_ = true;
  cluster::clear_done(job_folder_, owner_.host);  // an earlier agent's
  return {};
}

void Marks::beat() const {
  if (has_lease_) touch_lease_of(lease(), owner_);
}

/// On one line, as who reads leases wants it.
void Marks::note(const std::string& reason) {
  if (!has_lease_) return;
  const std::optional<LeaseOwner> held = this->held();
  if (!held || !is_own(*held)) return;
  owner_.note = reason;
  std::replace_if(
      owner_.note.begin(), owner_.note.end(), [](unsigned char letter) { return letter < ' '; },
      ' ');
  static_cast<void>(write_lease_of(lease(), owner_));
}

Status Marks::mark_done() {
  Status status = cluster::make_agents_folder(job_folder_);
  if (status) status = cluster::mark_done(job_folder_, mark_name_, text_);
  if (!status) return status;
  has_mark_ = true;
  release_lease();
  return {};
}

void Marks::release_lease() {
  if (!has_lease_) return;
  const std::optional<LeaseOwner> held = this->held();
  if (held && held->pid == 0) return;  // for want of a descriptor, say
  if (held && is_own(*held)) unlink(lease().c_str());
  has_lease_ = false;
}

bool Marks::is_done() const { return cluster::is_done(job_folder_, mark_name_, text_); }

void Marks::withdraw() const {
  if (has_mark_ && is_done()) cluster::clear_done(job_folder_, mark_name_);
}

/// The new one is there before the old one goes: an archive is made too often rather than too
/// seldom. No agent has such a name.
Status Marks::give_way() {
  if (mark_name_ != owner_.host) return {};
  std::string name = owner_.host + "~of-" + std::to_string(owner_.pid) + "-" +
                     std::to_string(owner_.start_time_ticks);
  if (has_mark_ && is_done()) {
    if (Status status = cluster::mark_done(job_folder_, name, text_); !status) return status;
  }
  mark_name_ = std::move(name);
  has_lease_ = false;
  return {};
}

}  // namespace aon::delivery
