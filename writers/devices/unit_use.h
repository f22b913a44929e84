/// How busy the units of a device were, from counters of its hardware: GPM (gpu_UUID/gpm, nvml) or
/// PM sampling (gpu_UUID/counters, gpu-counters). It says what records of kernels cannot: whether
/// computing, the memory or latency keeps a device from going faster. docs/gpu-bounds.md has the
/// rule, whose thresholds are Nsight Compute's (its sections/SpeedOfLight.py).
///
/// Counters are those of the whole device, whoever uses it.
/// Thread: one.   Cost: kMaxBuckets * 48 bytes per device and source, freed when all processes of
/// its node have passed; where many nodes wait for their last process, fewer: kMaxBucketsOfAll.
/// Nothing for devices that no process uses. Some 50 ns per sample.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/spool/home_node.h"
#include "writers/writer.h"

namespace aon::writers {

/// What a device was doing in a time between two samples. kSmallGrids: latency with less than half
/// of the multiprocessors at work.
enum class UnitClass : uint8_t { kIdle = 0, kCompute, kMemory, kBalanced, kLatency, kSmallGrids };
constexpr size_t kUnitClassCount = 6;

/// Of a time. Shares are means over what was counted, 0 to 1.
struct UnitUse {
  uint64_t counted_ns = 0;  ///< of it samples are there; 0: nothing else is known
  float sm_active = 0;      ///< multiprocessors with work
  float occupancy = 0;      ///< warps, of the most there can be; NaN: the device does not tell
  float compute = 0;        ///< of the pipe or the issue slots that were used most in each sample
  float memory = 0;         ///< bandwidth of the memory
  uint64_t class_ns[kUnitClassCount] = {};
};

namespace devices {

/// NaN: not told.
struct UnitSample {
  float graphics;  ///< share of time with any work
  float sm;
  float occupancy;
  float compute;
  float memory;
};
UnitClass class_of(const UnitSample& sample);

/// The samples of one source, kept as means over buckets whose width doubles as time goes on.
class UnitTimeline {
 public:
  static constexpr size_t kMaxBuckets = 4096;
  static constexpr uint64_t kFirstWidthNs = uint64_t{1} << 24;

  explicit UnitTimeline(size_t max_buckets = kMaxBuckets) : max_buckets_(max_buckets) {}

  /// A sample of [begin, end). They come in order of time.
  void add(uint64_t begin_ns, uint64_t end_ns, const UnitSample& sample);
  /// Nothing is counted of a time that is shorter than a bucket or the mean sample.
  UnitUse use_of(uint64_t begin_ns, uint64_t end_ns) const;

  void save(StateOut* out) const;
  bool load(StateIn* in);

 private:
  struct Bucket {  // sums of value * ns
    float counted_ns = 0;
    float sm = 0;
    float occupancy = 0;
    float occupancy_ns = 0;  ///< of the samples that have it
    float compute = 0;
    float memory = 0;
    float class_ns[kUnitClassCount] = {};
  };

  void make_room(uint64_t end_ns);

  size_t max_buckets_;
  uint64_t width_ns_ = kFirstWidthNs;
  uint64_t first_ = 0;  ///< bucket i is of [first_ + i, first_ + i + 1) * width_ns_
  std::vector<Bucket> buckets_;
  uint64_t sample_count_ = 0;
  uint64_t sampled_ns_ = 0;
};

/// All timelines of a job whose processes have not all passed.
class UnitUses {
 public:
  static constexpr size_t kMaxBucketsOfAll = 1u << 22;  ///< of timelines that are there at once
  static constexpr size_t kLeastBuckets = 256;          ///< of one, however many there are

  /// Knows the metrics and how many processes of each node have devices.
  void begin(const Model& model);

  /// Samples of a node, in order of time.
  void begin_location(uint32_t node);
  void add(const Event& sample);
  void end_location();

  /// Of a device of a process.
  class Device {
   public:
    /// From the finer source that covers at least half of the time, if one does.
    UnitUse use_of(uint64_t begin_ns, uint64_t end_ns) const;

   private:
    friend class UnitUses;
    const UnitTimeline* fine_ = nullptr;
    const UnitTimeline* coarse_ = nullptr;
  };
  /// Valid until pass().
  Device find(const Group& group, uint32_t device) const;

  /// A process with devices is done. After the last of a node its timelines are gone.
  void pass(const Group& group);

  /// The timelines that came since the last save(): other processes of the node may need them.
  void save(StateOut* out);
  Status load(StateIn* in);

 private:
  enum class Source : uint8_t { kGpm, kCounters };
  enum class Quantity : uint8_t { kGraphics, kSm, kOccupancy, kCompute, kMemory };
  struct Owner {
    std::string digits;  ///< of the device's UUID
    Source source;
    bool operator<(const Owner& other) const {
      return std::tie(digits, source) < std::tie(other.digits, other.source);
    }
  };
  struct Metric {
    uint32_t owner;  ///< in owners_
    Quantity quantity;
  };
  /// Samples of one time that have not all come.
  struct Row {
    uint64_t time_ns = 0;
    uint64_t previous_ns = 0;          ///< 0: none
    UnitTimeline* timeline = nullptr;  ///< once it is known
    UnitSample sample;
  };
  using Key = std::tuple<uint32_t, std::string, Source>;  ///< node, digits

  static std::optional<std::pair<Owner, Quantity>> told_by(const GlobalMetric& metric);
  void note_devices(const Group& group);
  size_t most_timelines() const;
  UnitTimeline* timeline_of(const Owner& owner);
  void end_row(const Owner& owner, Row* row);

  const Model* model_ = nullptr;
  std::vector<std::optional<Metric>> metrics_;       ///< by global metric
  std::vector<Owner> owners_;                        ///< of rows
  std::vector<uint32_t> left_counts_;                ///< by node: processes with devices
  std::set<std::pair<uint32_t, std::string>> used_;  ///< node, digits: those of its processes
  size_t max_buckets_ = UnitTimeline::kMaxBuckets;
  spool::HomeNodes homes_;
  std::map<Key, UnitTimeline> timelines_;
  std::vector<Key> unsaved_;

  // Of the location.
  uint32_t node_ = 0;
  std::vector<std::optional<Row>> rows_;  ///< by owner
  std::vector<uint32_t> told_owners_;     ///< that have one: few of all of the job
};

}  // namespace devices
}  // namespace aon::writers
