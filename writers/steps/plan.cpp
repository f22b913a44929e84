#include "writers/steps/plan.h"

#include "writers/steps/steps.h"

namespace aon::writers {

void steps::save_candidate(StateOut* out, const Candidate& candidate, Bodies* bodies) {
  out->put(candidate.token);
  out->put(candidate.region);
  out->put(candidate.lead_calls);
  out->put(candidate.least_gap_ns);
  bodies->save(out, candidate.body);
  out->put(candidate.token_set);
  out->put(candidate.calls);
  out->put(candidate.begin_ns);
  out->put(candidate.end_ns);
  out->put(candidate.from_ns);
  out->put(candidate.until_ns);
  out->put(candidate.period_ns);
  out->put(candidate.matched);
  out->put(candidate.covered_ns);
}

bool steps::load_candidate(StateIn* in, const Model& model, Candidate* candidate, Bodies* bodies) {
  Candidate& c = *candidate;
  return in->get(&c.token) && in->get(&c.region) && in->get(&c.lead_calls) &&
         in->get(&c.least_gap_ns) && bodies->load(in, &c.body) && in->get(&c.token_set) &&
         in->get(&c.calls) && in->get(&c.begin_ns) && in->get(&c.end_ns) && in->get(&c.from_ns) &&
         in->get(&c.until_ns) && in->get(&c.period_ns) && in->get(&c.matched) &&
         in->get(&c.covered_ns) &&
         in->check(c.region < model.regions.size() && c.lead_calls <= c.body.size());
}

void save_plan(StateOut* out, const StepPlan& plan) {
  out->put(plan.is_annotated);
  out->put(plan.is_sampled);
  for (const std::vector<StepPlan::Loop>& loops : plan.loops) {
    steps::Bodies bodies;
    out->put(uint64_t{loops.size()});
    for (const StepPlan::Loop& loop : loops) {
      out->put(loop.number);
      steps::save_candidate(out, loop.pattern, &bodies);
    }
  }
}

Status load_plan(StateIn* in, const Model& model, StepPlan* plan) {
  *plan = {};
  in->get(&plan->is_annotated);
  in->get(&plan->is_sampled);
  plan->loops.resize(model.groups.size());
  for (std::vector<StepPlan::Loop>& loops : plan->loops) {
    steps::Bodies bodies;
    uint64_t count = 0;
    if (!in->get(&count) || !in->check(count <= steps::kMaxLoops)) return in->status();
    for (uint64_t i = 0; i < count; ++i) {
      StepPlan::Loop loop{};
      if (!in->get(&loop.number) || !in->check(loop.number < steps::kMaxLoops) ||
          !steps::load_candidate(in, model, &loop.pattern, &bodies))
        return in->status();
      loops.push_back(std::move(loop));
    }
  }
  return in->status();
}

}  // namespace aon::writers
