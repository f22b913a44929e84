/// Markers of the archive: where and when something was lost, cut off or recorded less, and what
/// happened to processes, agents and clocks, as a list that viewers show beside the timelines.
/// They repeat what attributes, intervals and aon.json tell. Their number is bounded, for each kind
/// by itself, so that none pushes out another; of a kind those of the least weight are left out,
/// of one weight the later ones, and counted.
/// Owner: Otf2Writer.   Thread: one.   Cost: below 1 ns per event; at most kMostMarkers times
/// kMarkerBytes of memory, of traces.marker, and of what a share hands over of a process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "writers/writer.h"

namespace aon::writers::otf2 {

enum class MarkerKind : uint8_t {
  kProcessEnd,   ///< killed, or without MPI_Finalize
  kOpenAtEnd,    ///< EventKind::kOpenAtEnd
  kCut,          ///< EventKind::kCut
  kLoss,         ///< EventKind::kLostBegin, kDeviceGap
  kCallBudget,   ///< the mode of a call site was changed
  kNcclLevel,    ///< the level of NCCL
  kCuptiBudget,  ///< what CUPTI is asked for
  kNodeBudget,   ///< the rate of samples and counts
  kAgentRestart,
  kClockStep,
};
constexpr size_t kMarkerKindCount = 10;
constexpr size_t kMostMarkers = 10'000;       ///< and one for each kind that has more
constexpr uint64_t kMarkerBytes = 256;        ///< in traces.marker, at most
constexpr size_t kMostMarkerTextBytes = 200;  ///< longer texts are cut

/// What the marker's category is called.
const char* marker_category(MarkerKind kind);

struct Marker {
  enum class Scope : uint8_t { kLocation, kProcess, kNode };

  MarkerKind kind;
  Scope scope;
  uint64_t scope_id;  ///< the location's, the group's, or the index in Job::nodes
  uint64_t time_ns;
  uint64_t duration_ns;
  uint64_t weight;
  std::string text;
};

class Markers {  // NOLINT(readability-identifier-naming): of the copy of its array, not named here
 public:
  explicit Markers(size_t most = kMostMarkers) : most_of_kind_(most / kMarkerKindCount) {}

  /// Whether one of `weight` would stay. Asked first, where its text costs something.
  bool takes(MarkerKind kind, uint64_t weight) const;
  void add(Marker marker);
  /// Counts some that takes() refused.
  void leave_out(MarkerKind kind, uint64_t count = 1) { of(kind).offered_count += count; }

  /// Adds all of `others` behind the own ones.
  void take(Markers others);

  size_t count() const;
  uint64_t left_out_count(MarkerKind kind) const {
    return of(kind).offered_count - of(kind).kept.size();
  }
  /// All that stayed, by time.
  std::vector<const Marker*> by_time() const;

  /// What came since the last save(), which is forgotten.
  void save(StateOut* out);
  /// Adds it, as if it had come here.
  Status load(StateIn* in);

 private:
  struct Kept {
    Marker marker;
    uint64_t number;  ///< in the order in which they came
  };
  struct OfKind {
    std::vector<Kept> kept;  ///< a heap: the first to go is at the top
    uint64_t offered_count = 0;
  };
  static bool goes_later(const Kept& a, const Kept& b) {
    if (a.marker.weight != b.marker.weight) return a.marker.weight > b.marker.weight;
    return a.number < b.number;
  }
  static bool came_before(const Kept& a, const Kept& b) { return a.number < b.number; }
  OfKind& of(MarkerKind kind) { return kinds_[static_cast<size_t>(kind)]; }
  const OfKind& of(MarkerKind kind) const { return kinds_[static_cast<size_t>(kind)]; }

  size_t most_of_kind_;
  OfKind kinds_[kMarkerKindCount];
};

/// What the assembly knows of the job, and how many markers there are in the end.
struct JobMarkers {
  Markers known;
  uint64_t written_count = 0;
  std::map<std::string, uint64_t> left_out_counts;  ///< by category
};

/// Makes markers of the events of locations, also of those that are not in the archive: these are
/// then of their process.
class EventMarkers {
 public:
  EventMarkers(const Model& model, Markers* markers) : model_(model), markers_(markers) {}

  void begin_location(const Location& location);
  void add(std::span<const Event> events);

 private:
  template <class Text>
  void put(MarkerKind kind, const Event& event, uint64_t duration_ns, uint64_t weight, Text text);
  void add_loss(const Event& begin, uint64_t end_ns);
  std::string name_of(uint32_t region) const;
  std::string end_of_process() const;

  const Model& model_;
  Markers* markers_;
  const Location* location_ = nullptr;  ///< null: its events are not in the main archive
  const Group* group_ = nullptr;
  std::vector<uint32_t> own_regions_;  ///< local ids of those that AON's plugins made in the group
  std::optional<Event> loss_;          ///< whose end comes next
};

}  // namespace aon::writers::otf2
