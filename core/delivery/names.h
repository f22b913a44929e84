/// Which names a courier may use at a receiver.   Thread: any.
#pragma once

#include <string>
#include <string_view>

namespace aon::delivery {

/// In a job directory whose spool was brought elsewhere: one line that says where.
constexpr const char* kDeliveredNote = "delivered.txt";

/// Of a file of a node's spool folder: definitions.aon, topology.xml, segments of records, rings of
/// processes that had no agent, counts of those that had not even one.
bool is_file_name(std::string_view name);

/// Of these the ones of processes that had no agent: "fallback-PID-START.ring".
bool is_ring_name(std::string_view name);

/// Of these the ones that are links, a process each, of which the name is all.
bool is_link_name(std::string_view name);

/// Under which a file lies there until it is whole.
std::string part_name(const std::string& name);

/// Of an agent: its node, or NODE~2, NODE~3, ... (core/agent/settle.h).
bool is_node_name(std::string_view name);

}  // namespace aon::delivery
