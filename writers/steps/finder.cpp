// The first pass: each rank's candidates, then one decision for all of them.

#include <algorithm>
#include <cmath>
#include <optional>

#include "writers/steps/calls.h"
#include "writers/steps/plan.h"
#include "writers/steps/steps.h"

namespace aon::writers {
namespace {

using steps::CallScanner;
using steps::Candidate;

constexpr double kSamePeriod = 0.1;   ///< of two ranks in one loop, relative
constexpr size_t kMaxProposers = 64;  ///< ranks whose loops are put to the vote; all ranks vote

bool is_same_loop(const Candidate& a, const Candidate& b) {
  const double larger = std::max(a.period_ns, b.period_ns);
  return std::abs(a.period_ns - b.period_ns) <= kSamePeriod * larger && steps::overlap(a, b) >= 0.5;
}

/// Of two anchors of one loop that cover alike, the one that needs no times.
double worth(const Candidate& one) {
  return one.covered_ns * one.matched * (one.least_gap_ns == 0 ? 1.1 : 1);
}

class Finder : public StepFinder {
 public:
  Status begin(const Model& model) override {
    model_ = &model;
    scanner_.emplace(model);
    candidates_.resize(model.groups.size());
    plan_.loops.resize(model.groups.size());
    return {};
  }

  Status begin_location(const Location& location) override {
    is_wanted_ = location.type == LocationType::kThread && location.id == location.group;
    if (!is_wanted_) return {};
    group_ = location.group;
    unsaved_ = group_;
    scanner_->begin(model_->groups[location.group]);
    sample_.clear();
    return {};
  }

  Status events(std::span<const Event> events) override {
    if (!is_wanted_) return {};
    for (const Event& event : events) {
      if (event.kind == EventKind::kEnter && event.value_type() == ValueType::kStep) {
        const uint32_t region = scanner_->global_region(event);
        plan_.is_annotated =
            plan_.is_annotated ||
            (region < model_->regions.size() && model_->regions[region].role == RegionRole::kStep);
      }
      if (event.kind == EventKind::kLostBegin) sample_.note_hole();
      const steps::Call* call = scanner_->add(event);
      if (call == nullptr || call->token == 0 || plan_.is_annotated) continue;
      sample_.add(call->enter_ns, call->leave_ns, call->token, call->region);
    }
    return {};
  }

  Status end_location() override {
    if (!is_wanted_) return {};
    plan_.is_sampled = plan_.is_sampled || !sample_.is_whole();
    if (!plan_.is_annotated) candidates_[group_] = steps::find_candidates(sample_.calls());
    sample_.clear();
    return {};
  }

  Status finish(const Outcome&) override {
    if (plan_.is_annotated) {
      plan_.is_sampled = false;  // says something of loops that are found
    } else {
      vote();
    }
    candidates_.clear();
    return {};
  }

  /// Of annotations one is enough for all: later groups need no candidates.
  Status save(StateOut* out) override {
    out->put(plan_.is_annotated);
    out->put(plan_.is_sampled);
    out->put(unsaved_);
    if (unsaved_) {
      steps::Bodies bodies;
      out->put(uint64_t{candidates_[*unsaved_].size()});
      for (const Candidate& one : candidates_[*unsaved_]) steps::save_candidate(out, one, &bodies);
      candidates_[*unsaved_].clear();
    }
    plan_.is_sampled = false;
    unsaved_.reset();
    return {};
  }

  Status load(StateIn* in) override {
    bool is_annotated = false;
    bool is_sampled = false;
    std::optional<uint32_t> group;
    if (!in->get(&is_annotated) || !in->get(&is_sampled) || !in->get(&group)) return in->status();
    plan_.is_annotated |= is_annotated;
    plan_.is_sampled |= is_sampled;
    if (!group) return {};
    uint64_t count = 0;
    if (!in->get(&count) ||
        !in->check(*group < candidates_.size() && count <= steps::kMaxCandidates))
      return in->status();
    steps::Bodies bodies;
    std::vector<Candidate>& candidates = candidates_[*group];
    candidates.reserve(candidates.size() + count);
    for (uint64_t i = 0; i < count; ++i) {
      Candidate one;
      if (!steps::load_candidate(in, *model_, &one, &bodies)) return in->status();
      candidates.push_back(std::move(one));
    }
    return {};
  }

  const StepPlan& plan() const override { return plan_; }

 private:
  using Choice = std::vector<const Candidate*>;  ///< by group, null: has no such loop

  /// What each group would take for `proposal`'s loop, and its weight: the time they cover.
  Choice supporters(const Candidate& proposal, double* weight) const {
    Choice choice(candidates_.size(), nullptr);
    *weight = 0;
    for (size_t group = 0; group < candidates_.size(); ++group) {
      for (const Candidate& one : candidates_[group]) {
        if (!is_same_loop(one, proposal)) continue;
        if (choice[group] == nullptr || worth(one) > worth(*choice[group])) choice[group] = &one;
      }
      if (choice[group] != nullptr) *weight += choice[group]->covered_ns;
    }
    return choice;
  }

  /// Evenly spread among those that have loops left.
  std::vector<size_t> proposers() const {
    std::vector<size_t> groups;
    for (size_t group = 0; group < candidates_.size(); ++group) {
      if (!candidates_[group].empty()) groups.push_back(group);
    }
    const size_t count = std::min(groups.size(), kMaxProposers);
    for (size_t i = 0; i < count; ++i) groups[i] = groups[i * groups.size() / count];
    groups.resize(count);
    return groups;
  }

  /// The loop that most of the ranks' time speaks for; then the next, beside it in time.
  void vote() {
    for (uint32_t number = 0; number < steps::kMaxLoops; ++number) {
      Choice winner;
      double most = 0;
      for (const size_t group : proposers()) {
        for (const size_t i : steps::choose_loops(candidates_[group])) {
          double weight = 0;
          Choice choice = supporters(candidates_[group][i], &weight);
          if (weight <= most) continue;
          most = weight;
          winner = std::move(choice);
        }
      }
      if (winner.empty()) return;
      take(number, winner);
    }
  }

  void take(uint32_t number, const Choice& winner) {
    Candidate whole;
    whole.from_ns = UINT64_MAX;
    for (size_t group = 0; group < winner.size(); ++group) {
      if (winner[group] == nullptr) continue;
      whole.from_ns = std::min(whole.from_ns, winner[group]->from_ns);
      whole.until_ns = std::max(whole.until_ns, winner[group]->until_ns);
      plan_.loops[group].push_back({number, *winner[group]});
    }
    for (std::vector<Candidate>& of_group : candidates_) {
      std::erase_if(of_group,
                    [&](const Candidate& one) { return steps::overlap(one, whole) > 0.1; });
    }
  }

  const Model* model_ = nullptr;
  std::optional<CallScanner> scanner_;
  steps::SequenceSample sample_;
  bool is_wanted_ = false;
  uint32_t group_ = 0;
  std::optional<uint32_t> unsaved_;                 ///< the last group that began since save()
  std::vector<std::vector<Candidate>> candidates_;  ///< by group
  StepPlan plan_;
};

}  // namespace

std::unique_ptr<StepFinder> make_step_finder() { return std::make_unique<Finder>(); }

}  // namespace aon::writers
