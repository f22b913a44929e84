#include "writers/ledger/ledger_clock.h"

#include <algorithm>

namespace aon::writers::ledger {
namespace {

using Json = nlohmann::ordered_json;

/// Null where it is not known.
Json error_json(uint64_t error_ns) {
  return error_ns == kUnknownClockError ? Json() : Json(error_ns);
}

Json node_json(const LedgerFacts& facts, size_t n) {
  const Model& model = *facts.model;
  const clock::ClockMap& map = facts.clocks[n];
  Json node = {{"node", model.job->nodes[n].host},
               {"error_ns", error_json(model.clock_error_ns[n])},
               {"own_error_ns", map.max_error_ns()}};
  const clock::NodeClock& clock = model.cluster.nodes[n];
  if (!clock.knots.empty()) {
    node["worst_case_ns"] = std::max(clock.worst_case_ns, model.clock_error_ns[n]);
    node["offset_ns"] = clock.offset_ns;
    node["drift_ppb"] = clock.drift_ppb;
  }
  node["steps"] = map.step_count() + clock.step_count;
  node["rate_is_assumed"] = map.rate_is_assumed();
  return node;
}

Json pair_json(const Model& model, const clock::ClockEdge& edge) {
  const std::vector<spool::Node>& nodes = model.job->nodes;
  Json pair = {{"nodes", {nodes[edge.peer].host, nodes[edge.node].host}},
               {"error_ns", edge.is_in_tree ? Json(edge.error_ns) : Json()}};
  if (edge.is_in_tree) pair["worst_case_ns"] = std::max(edge.worst_case_ns, edge.error_ns);
  pair["round_trip_ns"] = edge.round_trip_ns;
  pair["drift_ppb"] = edge.drift_ppb;
  pair["pings"] = edge.ping_count;
  if (edge.dropped_count != 0) pair["pings_left_out"] = edge.dropped_count;
  return pair;
}

Json violations_json(const WaitSummary* waits) {
  if (waits == nullptr) return nullptr;
  const ClockViolations& violations = waits->clock_violations;
  return {{"messages", violations.message_count},
          {"collectives", violations.collective_count},
          {"max_ns", violations.max_ns}};
}

}  // namespace

/// One node's clock cannot be apart from itself: then the bound is that of its own ticks.
Json clock_json(const LedgerFacts& facts) {
  const Model& model = *facts.model;
  const size_t count = model.job->nodes.size();
  uint64_t max_error_ns = 0;
  Json nodes = Json::array();
  for (size_t n = 0; n < count; ++n) {
    max_error_ns = std::max(max_error_ns, model.clock_error_ns[n]);
    nodes.push_back(node_json(facts, n));
  }
  Json clock = {{"max_error_ns", error_json(max_error_ns)}};
  if (max_error_ns == kUnknownClockError) clock["reason"] = "not all clocks were compared";
  if (model.reference_node < count)
    clock["reference"] = model.job->nodes[model.reference_node].host;
  Json pairs = Json::array();
  for (const clock::ClockEdge& edge : model.cluster.edges) pairs.push_back(pair_json(model, edge));
  clock["pairs"] = std::move(pairs);
  clock["nodes"] = std::move(nodes);
  clock["violations"] = violations_json(facts.waits);
  return clock;
}

}  // namespace aon::writers::ledger
