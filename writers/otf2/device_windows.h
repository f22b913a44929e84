/// Copies between host and device as one-sided communication, as Score-P's archives have them: each
/// process with copies has a window ("CUDA_WINDOW") whose members are its master thread (rank 0)
/// and its streams of devices, by their ids. A copy to the device is a Get on its stream
/// from the host, one from the device a Put, one between memories of devices a Get from itself.
/// Owner: Otf2Writer.   Thread: one.   Cost: 8 bytes per stream.
#pragma once

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
    std::vector<uint64_t>& streams = by_group_[location.group].streams;
    streams.push_back(location.id);
    return static_cast<uint32_t>(streams.size());
  }
  void note_copies(uint32_t group) { by_group_[group].has_copies = true; }

  /// What is known since the last save(), which is forgotten.
  void save(StateOut* out) {
    out->put(uint64_t{by_group_.size()});
    for (const auto& [group, one] : by_group_) {
      out->put(group);
      out->put(one.streams);
      out->put(one.has_copies);
    }
    by_group_.clear();
  }
  Status load(StateIn* in) {
    uint64_t count = 0;
    if (!in->get(&count)) return in->status();
    for (uint64_t i = 0; i < count; ++i) {
      uint32_t group = 0;
      Streams one;
      if (!in->get(&group) || !in->get(&one.streams) || !in->get(&one.has_copies))
        return in->status();
      by_group_[group] = std::move(one);
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
    for (const auto& [group, one] : by_group_) {
      if (!one.has_copies) continue;
      all.push_back({group, {group}});  // a master thread's id is its group's
      all.back().members.insert(all.back().members.end(), one.streams.begin(), one.streams.end());
    }
    return all;
  }
  /// Place of the process in windows(), if it has copies.
  std::optional<uint32_t> place_of(uint32_t group) const {
    uint32_t place = 0;
    for (const auto& [one, streams] : by_group_) {
      if (one == group) return streams.has_copies ? std::optional(place) : std::nullopt;
      place += streams.has_copies ? 1 : 0;
    }
    return std::nullopt;
  }

 private:
  struct Streams {
    std::vector<uint64_t> streams;
    bool has_copies = false;
  };
  std::map<uint32_t, Streams> by_group_;
};

}  // namespace aon::writers::otf2
