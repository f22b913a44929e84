#include "perf/sampling/call_tree.h"

#include <algorithm>
#include <utility>

namespace aon::perf {

uint32_t CallTree::intern(std::span<const uint64_t> frames, Mappings* mappings) {
  size_t count = std::min<size_t>(frames.size(), 1);
  while (count < frames.size() && mappings->is_code(frames[count] - 1)) ++count;
  uint32_t path = kNoCallPath;
  for (size_t i = count; i > 0; --i) {
    // A return address may be the first of another function: the call lies before it.
    const uint64_t address = frames[i - 1] - (i > 1 ? 1 : 0);
    const auto [entry, is_new] = ids_.try_emplace({path, address}, 0);
    if (is_new) {
      const Mappings::Place place = mappings->find(address);
      const auto [node, is_unknown] = nodes_.try_emplace({path, place.mapping, place.offset}, 0);
      if (is_unknown && count_ >= kMaxNodesPerProcess) {
        ids_.erase(entry);
        nodes_.erase(node);
        is_full_ = true;
        return path;
      }
      if (is_unknown) {
        node->second = first_id_ + count_++;
        fresh_.push_back({path, place.mapping, place.offset});
      }
      entry->second = node->second;
    }
    path = entry->second;
  }
  return path;
}

CallTree::Fresh CallTree::take_fresh() {
  const auto fresh_count = static_cast<uint32_t>(fresh_.size());
  return {first_id_ + count_ - fresh_count, std::exchange(fresh_, {})};
}

}  // namespace aon::perf
