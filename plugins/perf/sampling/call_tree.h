/// The call paths of one process as a tree: a path is the number of its innermost node, so that a
/// sample of twenty frames is one number, and each path is written once.
///
///     addresses, outermost first --> nodes (parent, address) --> new ones, once --> definitions
///
/// Thread: the provider's.   Cost: one look-up in a hash table per frame, 100 bytes per node.
#pragma once

#include <aon/definition.h>

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "perf/sampling/mappings.h"

namespace aon::perf {

constexpr uint32_t kMaxNodesPerProcess = 1u << 17;
constexpr uint32_t kWorkerIdBits = 8;  ///< the upper bits of an id: of which worker

class CallTree {
 public:
  /// `first_id`: ids of an earlier worker of the agent are not used again.
  explicit CallTree(uint32_t first_id) : first_id_(first_id) {}

  /// The number of the path. `frames` as RawSample has them; a chain that leaves code, as it does
  /// in functions without frame pointers, ends there, for what is above was read from anywhere. A
  /// path that finds no room is that of its callers; kNoCallPath when not even the outermost is
  /// there.
  uint32_t intern(std::span<const uint64_t> frames, Mappings* mappings);

  /// Nodes since the last call, and the id of the first of them.
  struct Fresh {
    uint32_t first_id;
    std::vector<CallPathNode> nodes;
  };
  Fresh take_fresh();

  /// Addresses mean something else from now on: code was unmapped or replaced.
  void forget_addresses() { ids_.clear(); }
  /// True once a path was cut for want of room.
  bool is_full() const { return is_full_; }
  uint32_t node_count() const { return count_; }

 private:
  struct Key {
    uint32_t parent;
    uint64_t address;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const noexcept {
      return (key.address ^ (uint64_t{key.parent} << 40)) * 0x9e3779b97f4a7c15ull;
    }
  };

  /// A node as it was written.
  struct Node {
    uint32_t parent;
    uint32_t mapping;
    uint64_t offset;
    bool operator==(const Node&) const = default;
  };
  struct NodeHash {
    size_t operator()(const Node& node) const noexcept {
      return KeyHash()({node.parent, node.offset ^ uint64_t{node.mapping} << 32});
    }
  };

  uint32_t first_id_;
  uint32_t count_ = 0;
  bool is_full_ = false;
  std::unordered_map<Key, uint32_t, KeyHash> ids_;
  std::unordered_map<Node, uint32_t, NodeHash> nodes_;  ///< outlive what addresses mean
  std::vector<CallPathNode> fresh_;
};

}  // namespace aon::perf
