#include "core/spool/definitions.h"

#include <algorithm>

namespace aon::spool {
namespace {

struct DefinitionPrefix {
  uint32_t type;
  uint32_t bytes;
};

}  // namespace

std::optional<DefinitionView> DefinitionCursor::next() noexcept {
  if (rest_.empty()) return std::nullopt;
  DefinitionPrefix prefix;
  if (rest_.size() < sizeof(prefix)) {
    damaged_ = true;
    return std::nullopt;
  }
  std::memcpy(&prefix, rest_.data(), sizeof(prefix));
  rest_ = rest_.subspan(sizeof(prefix));
  if (prefix.bytes > rest_.size()) {
    damaged_ = true;
    rest_ = {};
    return std::nullopt;
  }
  const DefinitionView view{static_cast<DefinitionType>(prefix.type), rest_.first(prefix.bytes)};
  rest_ = rest_.subspan(prefix.bytes);
  return view;
}

namespace {

/// Up to `most` values of type T behind a struct of `struct_bytes`.
template <class T>
std::vector<T> values_behind(std::span<const uint8_t> payload, size_t struct_bytes, size_t most) {
  const std::span<const uint8_t> bytes = payload.subspan(std::min(payload.size(), struct_bytes));
  std::vector<T> values(std::min(bytes.size() / sizeof(T), most));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

}  // namespace

std::vector<uint32_t> definition_ranks(std::span<const uint8_t> payload,
                                       const GroupDefinition& group) {
  const size_t most = std::min<size_t>(group.member_count, kMaxGroupMembers);
  return values_behind<uint32_t>(payload, sizeof(GroupDefinition), most);
}

std::vector<uint32_t> definition_extents(std::span<const uint8_t> payload,
                                         const CartesianDefinition& cartesian) {
  const size_t most = std::min(cartesian.dimension_count, kMaxCartesianDimensions);
  return values_behind<uint32_t>(payload, sizeof(CartesianDefinition), most);
}

std::optional<std::vector<uint32_t>> definition_sources(std::span<const uint8_t> payload,
                                                        const NeighborsDefinition& neighbors) {
  const size_t most = std::min(neighbors.source_count, kMaxNeighbors);
  std::vector<uint32_t> sources =
      values_behind<uint32_t>(payload, sizeof(NeighborsDefinition), most);
  if (sources.size() != neighbors.source_count) return std::nullopt;
  return sources;
}

std::vector<uint64_t> definition_counts(std::span<const uint8_t> payload,
                                        const NcclSumsDefinition& sums) {
  return values_behind<uint64_t>(payload, sizeof(NcclSumsDefinition), sums.bucket_count);
}

std::vector<CallPathNode> definition_call_paths(std::span<const uint8_t> payload,
                                                const CallPathsDefinition& paths) {
  return values_behind<CallPathNode>(payload, sizeof(CallPathsDefinition), paths.count);
}

std::string_view definition_string(std::span<const uint8_t> payload, size_t struct_bytes,
                                   size_t index) noexcept {
  if (payload.size() <= struct_bytes) return {};
  std::string_view text(reinterpret_cast<const char*>(payload.data()) + struct_bytes,
                        payload.size() - struct_bytes);
  for (; index > 0; --index) {
    const size_t end = text.find('\0');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\0'));
}

}  // namespace aon::spool
