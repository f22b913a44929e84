/// The loops in a sample of a thread's MPI calls. docs/steps.md says how and why.
///
/// An anchor is a call that comes once per iteration: a token, or the calls of a token before which
/// the program computed long. Between two anchors is an interval. An anchor is a candidate when its
/// intervals are alike, that is have the same set of tokens, and when that is no chance: the lower
/// end of Wilson's 95 % interval of their share is above kLeastShare.
/// Thread: one.   Cost: some 0.2 to 0.8 s per full sample: kMaxTokens passes over it. What is kept
/// of a rank has at most 36 KiB: kMaxCandidates, and their Bodies.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "writers/steps/bodies.h"
#include "writers/steps/calls.h"
#include "writers/steps/sequence_sample.h"

namespace aon::writers::steps {

constexpr size_t kLeastSteps = 5;      ///< fewer are no loop
constexpr double kLeastShare = 0.55;   ///< see above: 5 of 5, 10 of 11, 130 of 200 pass
constexpr double kLeastCover = 0.02;   ///< of the thread's time
constexpr double kInnermost = 0.75;    ///< of what the best level covers
constexpr size_t kMaxTokens = 64;      ///< tried as anchors
constexpr size_t kMaxCandidates = 96;  ///< kept for the vote
constexpr size_t kMaxLoops = 16;       ///< of a program, one after the other
constexpr uint64_t kGapFactor = 8;     ///< anchors farther apart than so many steps: another loop

struct Candidate {
  uint64_t token = 0;
  uint32_t region = 0;        ///< global id
  uint32_t lead_calls = 0;    ///< an iteration begins so many calls before its anchor
  uint64_t least_gap_ns = 0;  ///< the anchor is a call after so much time outside MPI
  Body body;                  ///< one iteration from its anchor on
  uint64_t token_set = 0;     ///< of a usual iteration: sum of in_set() of each of its tokens, once
  uint64_t calls = 0;         ///< of a usual iteration
  uint64_t begin_ns = 0;      ///< first and last anchor
  uint64_t end_ns = 0;
  uint64_t from_ns = 0;   ///< begin of the first iteration
  uint64_t until_ns = 0;  ///< end of the last one; end_ns where it is not complete
  double period_ns = 0;   ///< mean
  double matched = 0;     ///< share of usual iterations
  double covered_ns = 0;  ///< by them
};

/// At most kMaxCandidates, those that cover most first.
std::vector<Candidate> find_candidates(std::span<const SampledCall> calls);

/// The level of each of the thread's loops, indices into `candidates`: of all levels of a loop the
/// innermost that covers kInnermost of what the best one covers.
std::vector<size_t> choose_loops(std::span<const Candidate> candidates);

/// Of anchors after long computations: a call that the system delayed looks like one, but comes too
/// early in the pattern.
constexpr bool is_next_anchor(uint64_t calls_since, uint64_t usual_calls) {
  return 5 * calls_since >= 4 * usual_calls;
}

/// What a token adds to the hash of a set of them.
constexpr uint64_t in_set(uint64_t token) { return mix(token, 0); }

/// Share of the shorter one's time in which both run, whole iterations counted.
double overlap(const Candidate& a, const Candidate& b);

}  // namespace aon::writers::steps
