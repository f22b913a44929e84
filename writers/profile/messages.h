/// Who sent how much to whom: point-to-point messages as their senders saw them, by world rank.
/// Each group keeps the first kMaxPartners destinations exactly; the rest is summed up as "other".
/// Thread: one.   Cost: O(1) per send, two array loads; memory at most 64 rows per group.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "writers/profile/local_ids.h"
#include "writers/writer.h"

namespace aon::writers::profile {

constexpr size_t kMaxPartners = 64;
constexpr int64_t kOtherDestination = -1;  ///< beyond kMaxPartners, or not known

struct MessageRow {
  uint32_t source;  ///< group
  int64_t destination;
  uint64_t count;
  uint64_t bytes;
};

class MessageTable {
 public:
  explicit MessageTable(const Model& model);

  /// The sends that follow are those of `group`.
  void begin(const Group& group);
  void add(const Event& event);

  /// By source and destination, "other" first.
  std::vector<MessageRow> rows() const;

  void save(StateOut* out);
  Status load(StateIn* in);

 private:
  struct Sum {
    uint64_t count = 0;
    uint64_t bytes = 0;
    void add(uint64_t message_count, uint64_t message_bytes) {
      count += message_count;
      bytes += message_bytes;
    }
  };
  struct Partner {
    uint32_t destination;
    Sum sum;
  };
  struct Sender {
    std::vector<Partner> partners;
    Sum other;
  };
  static constexpr uint8_t kNoPartner = 0xff;

  int64_t world_rank(uint32_t communicator, int32_t peer) const;
  void add(int64_t destination, uint64_t count, uint64_t bytes);
  void end_group();

  const Model* model_;
  std::map<uint32_t, Sender> senders_;  ///< by group
  std::vector<uint8_t> partner_index_;  ///< by destination, of the current group
  LocalIds communicators_;
  const Group* group_ = nullptr;
  Sender* sender_ = nullptr;  ///< of `group_`
};

}  // namespace aon::writers::profile
