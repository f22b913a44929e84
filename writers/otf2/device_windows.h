/// Copies between host and device as one-sided communication, as Score-P's archives have them: each
/// process with copies has a window ("CUDA_WINDOW") whose members are its master thread (rank 0)
/// and its streams of devices, by their ids. A copy to the device is a Get on its stream
/// from the host, one from the device a Put, one between memories of devices a Get from itself.
/// Owner: Otf2Writer.   Thread: one.   Cost: 8 bytes per stream; a place is found
/// in logarithmic time, for each location asks for that of its process.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "writers/writer.h"

namespace aon::writers::otf2 {

/// Streams without a device are work of the host, and stay with their process.
inline bool is_of_device(const Location& location) {
  return location.type == LocationType::kAcceleratorStream && location.device != kNoDevice;
}

class DeviceWindows {
 public:
  /// `location` is a stream of a device and in the archive. Returns its rank in the window of its
  /// process.
  uint32_t add_stream(const Location& location) {
    std::vector<uint64_t>& streams = streams_[location.group];
    streams.push_back(location.id);
    return static_cast<uint32_t>(streams.size());
  }
  void note_copies(uint32_t group) {
    const auto at = std::lower_bound(copying_.begin(), copying_.end(), group);
    if (at == copying_.end() || *at != group) copying_.insert(at, group);  // mostly behind all
  }

  /// What is known since the last save(), which is forgotten.
  void save(StateOut* out) {
    out->put(uint64_t{streams_.size()});
    for (const auto& [group, streams] : streams_) {
      out->put(group);
      out->put(streams);
      out->put(place_of(group).has_value());
    }
    streams_.clear();
    copying_.clear();
  }
  Status load(StateIn* in) {
    uint64_t count = 0;
    if (!in->get(&count)) return in->status();
    for (uint64_t i = 0; i < count; ++i) {
      uint32_t group = 0;
      std::vector<uint64_t> streams;
      bool has_copies = false;
      if (!in->get(&group) || !in->get(&streams) || !in->get(&has_copies)) return in->status();
      streams_[group] = std::move(streams);
      if (has_copies) note_copies(group);
    }
    return {};
  }

  /// A process that has copies.
  struct Window {
    uint32_t group;
    std::vector<uint64_t> members;  ///< ids of locations, the master thread first
  };
  std::vector<Window> windows() const {
    std::vector<Window> all;
    for (const uint32_t group : copying_) {
      const std::vector<uint64_t>& streams = streams_.at(group);
      all.push_back({group, {group}});  // a master thread's id is its group's
      all.back().members.insert(all.back().members.end(), streams.begin(), streams.end());
    }
    return all;
  }
  /// Place of the process in windows(), if it has copies.
  std::optional<uint32_t> place_of(uint32_t group) const {
    const auto at = std::lower_bound(copying_.begin(), copying_.end(), group);
    if (at == copying_.end() || *at != group) return std::nullopt;
    return static_cast<uint32_t>(at - copying_.begin());
  }

 private:
  std::map<uint32_t, std::vector<uint64_t>> streams_;  ///< by group
  std::vector<uint32_t> copying_;  ///< groups that have copies, and streams; ascending
};

}  // namespace aon::writers::otf2
