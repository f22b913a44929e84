/// Local id -> global id without hashing for the ids that occur in practice. Ids come from the
/// profiled process and are not trusted: a wild one goes into the sparse table.
/// Thread: one.   Cost: one load; memory at most 4 * kDenseIds bytes and what the map holds.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace aon::writers::profile {

class LocalIds {
 public:
  static constexpr uint32_t kNone = 0xffffffffu;
  static constexpr uint32_t kDenseIds = 1u << 16;

  LocalIds() = default;
  explicit LocalIds(const std::unordered_map<uint32_t, uint32_t>& ids) {
    for (const auto& [local, global] : ids) {
      if (local >= kDenseIds) {
        sparse_[local] = global;
        continue;
      }
      if (local >= dense_.size()) dense_.resize(local + 1, kNone);
      dense_[local] = global;
    }
  }

  /// kNone when `local` has no definition.
  uint32_t global(uint32_t local) const {
    if (local < dense_.size()) return dense_[local];
    const auto found = sparse_.find(local);
    return found == sparse_.end() ? kNone : found->second;
  }

 private:
  std::vector<uint32_t> dense_;
  std::unordered_map<uint32_t, uint32_t> sparse_;
};

}  // namespace aon::writers::profile
