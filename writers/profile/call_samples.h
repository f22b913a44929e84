/// How often each call path of each thread was sampled.
/// Thread: one.   Cost: one look-up per sample; memory per path and thread that was hit.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "writers/writer.h"

namespace aon::writers::profile {

struct CallSampleRow {
  uint32_t group;
  int32_t tid;
  uint32_t call_path;  ///< in Model::call_paths
  uint64_t count;
  uint64_t period;  ///< sum over the samples, in units of the event
};

/// Of one node of the tree, over all processes. Samples stand for different times where the rate
/// changed: shares are those of the periods, in units of the event.
struct CallPathCount {
  uint64_t self = 0;   ///< samples that hit it
  uint64_t total = 0;  ///< and what it called
  uint64_t self_period = 0;
  uint64_t total_period = 0;
};

class CallSamples {
 public:
  explicit CallSamples(const Model& model) : model_(&model) {}

  /// Samples that follow are those of `group`.
  void begin(const Group& group) { group_ = &group; }
  void add(const Event& event);

  /// By group, thread and path.
  std::vector<CallSampleRow> rows() const;
  /// One for each of Model::call_paths.
  std::vector<CallPathCount> counts() const;
  uint64_t unknown_count() const { return unknown_count_; }

  void save(StateOut* out);
  Status load(StateIn* in);

 private:
  struct Sum {
    uint64_t count = 0;
    uint64_t period = 0;
  };
  const Model* model_;
  const Group* group_ = nullptr;
  std::map<std::tuple<uint32_t, int32_t, uint32_t>, Sum> sums_;  ///< by group, tid, path
  uint64_t unknown_count_ = 0;  ///< samples whose path has no definition
};

}  // namespace aon::writers::profile
