/// Decoding of definition payloads, which are untrusted bytes: a struct of definition.h and its
/// strings. Thread: any.   Cost: one copy of the struct, no allocation for the text.
#pragma once

#include <aon/definition.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace aon::spool {

struct DefinitionView {
  DefinitionType type;
  std::span<const uint8_t> payload;
};

/// Walks over {u32 type, u32 bytes, bytes} of a definition block.
class DefinitionCursor {
 public:
  explicit DefinitionCursor(std::span<const uint8_t> block) noexcept : rest_(block) {}
  /// The next definition; nothing at the end or at bytes that do not fit (is_damaged()).
  std::optional<DefinitionView> next() noexcept;
  bool is_damaged() const noexcept { return damaged_; }

 private:
  std::span<const uint8_t> rest_;
  bool damaged_ = false;
};

/// The struct at the start of `payload`, or nothing when it is too short.
template <class T>
std::optional<T> definition_struct(std::span<const uint8_t> payload) noexcept {
  if (payload.size() < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, payload.data(), sizeof(T));
  return value;
}

/// The members of a GroupDefinition: as many of the ranks it announces as are there.
std::vector<uint32_t> definition_ranks(std::span<const uint8_t> payload,
                                       const GroupDefinition& group);

/// The extents of a CartesianDefinition: as many of those it announces as are there.
std::vector<uint32_t> definition_extents(std::span<const uint8_t> payload,
                                         const CartesianDefinition& cartesian);

/// The sources of a NeighborsDefinition; nothing where it announces more than are there.
std::optional<std::vector<uint32_t>> definition_sources(std::span<const uint8_t> payload,
                                                        const NeighborsDefinition& neighbors);

/// The counts of a NcclSumsDefinition: as many of those it announces as are there.
std::vector<uint64_t> definition_counts(std::span<const uint8_t> payload,
                                        const NcclSumsDefinition& sums);

/// The nodes of a CallPathsDefinition: as many of those it announces as are there.
std::vector<CallPathNode> definition_call_paths(std::span<const uint8_t> payload,
                                                const CallPathsDefinition& paths);

/// String number `index` behind a struct of `struct_bytes`; empty when it is not there. The last
/// one may lack its NUL.
std::string_view definition_string(std::span<const uint8_t> payload, size_t struct_bytes,
                                   size_t index) noexcept;

}  // namespace aon::spool
