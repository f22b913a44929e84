// The finding of calls that do not return and are no collectives: who waits for whom.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "writers/hang/hang.h"
#include "writers/hang/text.h"
#include "writers/profile/silent.h"

namespace aon::writers {
namespace {

constexpr size_t kMaxNamed = 4;  ///< of a ring

class StuckText : private HangText {
 public:
  StuckText(const Model& model, const HangReport& report)
      : HangText(model, report.last_ns, model.end_ns), model_(model), report_(report) {
    for (const uint32_t i : report.open_calls) {
      const OpenCall& call = model.open_calls[i];
      // Where another thread went on, it may have been the one that was meant to wait.
      const bool goes_on = report.last_ns[call.group] > call.start_ns;
      if (!goes_on && !has_ended_well(model.groups[call.group]))
        calls_.try_emplace(call.group, &call);
    }
  }

  std::string finding(bool must_name) const {
    if (calls_.empty()) return {};
    const std::vector<uint32_t> ring = find_ring();
    if (!ring.empty()) return ring_text(ring);
    std::string text = waiting_for_one_text();
    return text.empty() && !must_name ? waiting_text() : text;
  }

 private:
  using Waiters = std::vector<uint32_t>;  ///< groups, ascending

  std::string region(const OpenCall& call) const {
    return call.region < model_.regions.size() ? model_.regions[call.region].name : "a call";
  }

  static std::string rank(uint32_t group) { return fmt::format("rank {}", group); }

  /// The process that the call waits for, where that is one of this job.
  std::optional<uint32_t> partner(const OpenCall& call) const {
    if (!call.communicator || is_exchange(call)) return std::nullopt;
    return rank_member(model_, *call.communicator, call.peer);
  }

  /// The same, of requests: where it can only be one.
  std::optional<uint32_t> awaited(const OpenCall& call) const {
    const auto found =
        report_.awaited.find(static_cast<uint32_t>(&call - model_.open_calls.data()));
    if (found == report_.awaited.end()) return partner(call);
    return found->second.size() == 1 ? std::optional(found->second.front()) : std::nullopt;
  }

  /// Of a process that waits for several it is not known for whom.
  bool waits_for_some(const OpenCall& call) const {
    return awaited(call) ||
           report_.awaited.count(static_cast<uint32_t>(&call - model_.open_calls.data())) != 0;
  }

  std::optional<uint32_t> next_stuck(uint32_t group) const {
    const std::optional<uint32_t> other = awaited(*calls_.at(group));
    return other && calls_.count(*other) != 0 ? other : std::nullopt;
  }

  /// Processes of which each waits for the next one, and the last one for the first.
  std::vector<uint32_t> find_ring() const {
    std::map<uint32_t, uint32_t> walk_of;  // the walk that came to a process, by its first one
    for (const auto& [first, unused] : calls_) {
      for (std::optional<uint32_t> at = first; at; at = next_stuck(*at)) {
        const auto [walk, is_new] = walk_of.try_emplace(*at, first);
        if (is_new) continue;
        if (walk->second == first) return ring_of(*at);
        break;
      }
    }
    return {};
  }

  std::vector<uint32_t> ring_of(uint32_t first) const {
    std::vector<uint32_t> ring{first};
    for (uint32_t at = *next_stuck(first); at != first; at = *next_stuck(at)) ring.push_back(at);
    std::rotate(ring.begin(), std::min_element(ring.begin(), ring.end()), ring.end());
    return ring;
  }

  std::string ring_text(const std::vector<uint32_t>& ring) const {
    uint64_t closed_ns = 0;
    for (const uint32_t group : ring) closed_ns = std::max(closed_ns, calls_.at(group)->start_ns);
    std::string text = ring.size() == 1
                           ? "a rank waited for itself"
                           : fmt::format("{} ranks waited for each other{}", ring.size(),
                                         ring.size() == 2 ? "" : " in a ring");
    text += fmt::format(" for {}", for_seconds(closed_ns));
    for (size_t i = 0; i < ring.size(); ++i) {
      if (ring.size() > kMaxNamed && i == kMaxNamed - 1) {
        text += ", ...";
        i = ring.size() - 1;
      }
      const uint32_t next = ring[(i + 1) % ring.size()];
      text += fmt::format("{} {} for {} in {}", i == 0 ? ":" : ",", rank(ring[i]), rank(next),
                          region(*calls_.at(ring[i])));
    }
    return text;
  }

  template <typename Key>
  static auto most(const std::map<Key, Waiters>& waiters) {
    return std::max_element(waiters.begin(), waiters.end(), [](const auto& a, const auto& b) {
      return a.second.size() < b.second.size();
    });
  }

  /// One that no more is known of than that others wait for it; "" where there is none.
  std::string waiting_for_one_text() const {
    std::map<std::pair<uint32_t, std::string>, Waiters> waiters;
    for (const auto& [group, call] : calls_) {
      const std::optional<uint32_t> other = awaited(*call);
      if (!other) continue;
      const auto stuck = calls_.find(*other);
      const bool waits_too = stuck != calls_.end() && waits_for_some(*stuck->second);
      if (!waits_too) waiters[{*other, region(*call)}].push_back(group);
    }
    if (waiters.empty()) return {};
    const auto& [awaited, groups] = *most(waiters);
    return fmt::format("{} never ended: rank {} waited for {} for {}, {}", awaited.second,
                       list(groups), who(awaited.first), for_seconds(first_ns(groups)),
                       state_of(awaited.first));
  }

  std::string state_of(uint32_t group) const {
    const auto call = calls_.find(group);
    if (call != calls_.end()) return "which was in " + region(*call->second);
    if (report_.last_ns[group] == 0) return "of which nothing was recorded";
    return fmt::format("whose last call was over {} before the end{}",
                       for_seconds(report_.last_ns[group]), polls_apart(group));
  }

  /// Calls that name nobody.
  std::string waiting_text() const {
    std::map<std::string, Waiters> waiters;
    for (const auto& [group, call] : calls_) {
      const char* from = call->peer == kAnyPeer ? " from any rank" : "";
      waiters[region(*call) + from].push_back(group);
    }
    const auto& [name, groups] = *most(waiters);
    std::string text = fmt::format("{} never ended: rank {} waited for {}", name, list(groups),
                                   for_seconds(first_ns(groups)));
    if (name == "MPI_Init" || name == "MPI_Init_thread") return text + absent_from_init();
    if (name == "MPI_Finalize") return text + absent_from_end(groups);
    return groups.size() == 1 ? text + sends_to(*calls_.at(groups[0])) : text;
  }

  std::string sends_to(const OpenCall& call) const {
    if (!is_exchange(call) || call.peer < 0 || !call.communicator) return {};
    return fmt::format(",{} of {}", partner_text(call),
                       model_.communicators[*call.communicator].name);
  }

  std::string absent_from_init() const {
    Waiters absent;
    for (const Group& group : model_.groups) {
      if (group.rank && profile::is_silent(group)) absent.push_back(group.id);
    }
    if (absent.empty()) return {};
    return fmt::format(", rank {} did not come to it, or is not recorded", list(absent));
  }

  std::string absent_from_end(const Waiters& present) const {
    Waiters absent;
    for (const Group& group : model_.groups) {
      const bool is_there = report_.has_finalized[group.id] != 0 ||
                            std::binary_search(present.begin(), present.end(), group.id);
      if (group.rank && !profile::is_silent(group) && !is_there) absent.push_back(group.id);
    }
    if (absent.empty()) return {};
    if (absent.size() > 1) return fmt::format(", rank {} did not come to it", list(absent));
    return fmt::format(", {} did not come to it, {}", who(absent[0]), state_of(absent[0]));
  }

  uint64_t first_ns(const Waiters& groups) const {
    uint64_t first = UINT64_MAX;
    for (const uint32_t group : groups) first = std::min(first, calls_.at(group)->start_ns);
    return first;
  }

  const Model& model_;
  const HangReport& report_;
  std::map<uint32_t, const OpenCall*> calls_;  ///< by group; the first of its threads
};

}  // namespace

std::string stuck_finding(const Model& model, const HangReport& report, bool must_name) {
  return StuckText(model, report).finding(must_name);
}

}  // namespace aon::writers
