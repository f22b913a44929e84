/// Who moved how much in whose memory: one-sided transfers as their origins saw them, by window and
/// world rank of the target. Each group keeps the first kMaxPartners targets of a window exactly;
/// the rest is summed up as "other".
/// Thread: one.   Cost: one search per transfer; memory at most 65 rows per group and window.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "writers/profile/local_ids.h"
#include "writers/profile/messages.h"
#include "writers/writer.h"

namespace aon::writers::profile {

struct TransferSum {
  uint64_t put_count = 0;
  uint64_t get_count = 0;
  uint64_t atomic_count = 0;
  uint64_t bytes_sent = 0;  ///< origin to target
  uint64_t bytes_received = 0;
};

struct TransferRow {
  uint32_t origin;  ///< group
  uint32_t window;  ///< global id
  int64_t target;   ///< group, or kOtherDestination
  TransferSum sum;
};

class TransferTable {
 public:
  explicit TransferTable(const Model& model) : model_(&model) {}

  /// The transfers that follow are those of `group`.
  void begin(const Group& group);
  void add(const Event& event);

  /// By origin, window and target, "other" first.
  std::vector<TransferRow> rows() const;

  void save(StateOut* out);
  Status load(StateIn* in);

 private:
  struct Origin {
    std::map<std::pair<uint32_t, int64_t>, TransferSum> sums;  ///< by window and target
    std::map<uint32_t, size_t> target_count;                   ///< by window
  };

  int64_t target_of(uint32_t window, int32_t peer) const;
  /// Where transfers to `target` are summed up.
  static TransferSum* sum_of(Origin* origin, uint32_t window, int64_t target);

  const Model* model_;
  std::map<uint32_t, Origin> origins_;  ///< by group
  LocalIds windows_;
  const Group* group_ = nullptr;
  Origin* origin_ = nullptr;  ///< of `group_`
};

}  // namespace aon::writers::profile
