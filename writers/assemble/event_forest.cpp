// The held-back records of EventOrder: who encloses whom, and their order on the way out.

#include <algorithm>

#include "writers/assemble/event_order.h"

namespace aon::writers {

/// Holds `record` back. A span takes the records inside it, which are the last roots, as children.
void EventOrder::hold(const Record& record) {
  if (nodes_.size() >= kMaxPending) release_all(record.head.start_ticks);
  Node node;
  node.record = record;
  node.end_ticks = end_ticks(record);
  if (is_call(record.head.kind)) {
    node.first_child = adopt(record, &node);
    if (has_counters_of(record.head)) {
      node.counters = static_cast<uint32_t>(held_counters_.size());
      held_counters_.push_back(counters_);
    }
  } else if (const Record* counters = take_border_counters(record.head); counters != nullptr) {
    node.counters = static_cast<uint32_t>(held_counters_.size());
    held_counters_.push_back(*counters);
  }
  nodes_.push_back(node);
  const uint32_t index = static_cast<uint32_t>(nodes_.size() - 1);
  if ((record.head.flags & kOpenAtEnd) != 0 && hold_in_open_call(index)) return;
  roots_.push_back(index);
}

/// The calls that a thread had not left arrive in either order. True when the last root is one that
/// encloses `index`, which is then its last child.
bool EventOrder::hold_in_open_call(uint32_t index) {
  const Node& node = nodes_[index];
  uint32_t parent = kNone;
  uint32_t candidate = roots_.empty() ? kNone : roots_.back();
  for (uint16_t depth = 0; candidate != kNone && depth + node.height < kMaxNesting; ++depth) {
    const Node& outer = nodes_[candidate];
    if ((outer.record.head.flags & kOpenAtEnd) == 0 || !is_call(outer.record.head.kind)) break;
    if (outer.record.head.start_ticks > node.record.head.start_ticks) break;
    if (outer.end_ticks < node.end_ticks) break;
    parent = candidate;
    candidate = outer.last_child;
  }
  if (parent == kNone) return false;
  Node& outer = nodes_[parent];
  if (outer.last_child == kNone) {
    outer.first_child = index;
  } else {
    nodes_[outer.last_child].next = index;
  }
  outer.last_child = index;
  return true;
}

/// Takes the roots that began inside the span `record` off the forest; returns the first.
uint32_t EventOrder::adopt(const Record& record, Node* parent) {
  size_t keep = roots_.size();
  while (keep > 0) {
    const Node& root = nodes_[roots_[keep - 1]];
    if (root.record.head.start_ticks < record.head.start_ticks) break;
    if (root.height + 1 >= kMaxNesting) break;
    parent->height = std::max<uint16_t>(parent->height, static_cast<uint16_t>(root.height + 1));
    --keep;
  }
  if (keep == roots_.size()) return kNone;
  const uint32_t first = roots_[keep];
  for (size_t i = keep; i + 1 < roots_.size(); ++i) nodes_[roots_[i]].next = roots_[i + 1];
  parent->last_child = roots_.back();
  roots_.resize(keep);
  return first;
}

/// Sends all roots out. `limit_ticks`: where the record behind them starts.
void EventOrder::release(uint64_t limit_ticks) {
  for (size_t i = 0; i < roots_.size(); ++i) {
    const uint64_t next_start =
        i + 1 < roots_.size() ? nodes_[roots_[i + 1]].record.head.start_ticks : limit_ticks;
    emit_node(nodes_[roots_[i]], next_start);
  }
  roots_.clear();
}

void EventOrder::release_all(uint64_t limit_ticks) {
  release(limit_ticks);
  nodes_.clear();
  held_counters_.clear();
}

void EventOrder::emit_list(uint32_t first, uint64_t limit_ticks) {
  for (uint32_t index = first; index != kNone; index = nodes_[index].next) {
    const uint32_t next = nodes_[index].next;
    emit_node(nodes_[index], next == kNone ? limit_ticks : nodes_[next].record.head.start_ticks);
  }
}

void EventOrder::emit_node(const Node& node, uint64_t limit_ticks) {
  const Record* counters = node.counters == kNone ? nullptr : &held_counters_[node.counters];
  if (is_call(node.record.head.kind)) {
    emit_span(node.record, node.first_child, counters);
  } else if (node.record.head.kind == RecordKind::kLost) {
    emit_lost(node.record, limit_ticks);
  } else {
    emit_simple(node.record, counters);
  }
}

}  // namespace aon::writers
