#include "writers/otf2/marker_file.h"

#include <algorithm>

#include "core/base/digits.h"
#include "writers/otf2/archive.h"

namespace aon::writers::otf2 {
namespace {

constexpr const char* kGroup = "AON";
constexpr OTF2_MarkerRef kLeftOut = kMarkerKindCount;  ///< category behind those of the kinds

/// How much a reader should mind. What the budget does is on purpose.
OTF2_MarkerSeverity severity_of(MarkerKind kind) {
  switch (kind) {
    case MarkerKind::kProcessEnd:
    case MarkerKind::kLoss:
      return OTF2_SEVERITY_HIGH;
    case MarkerKind::kOpenAtEnd:
    case MarkerKind::kCut:
    case MarkerKind::kAgentRestart:
    case MarkerKind::kClockStep:
      return OTF2_SEVERITY_MEDIUM;
    case MarkerKind::kCallBudget:
    case MarkerKind::kNcclLevel:
    case MarkerKind::kCuptiBudget:
    case MarkerKind::kNodeBudget:
      break;
  }
  return OTF2_SEVERITY_LOW;
}

OTF2_MarkerScope scope_of(Marker::Scope scope) {
  if (scope == Marker::Scope::kLocation) return OTF2_MARKER_SCOPE_LOCATION;
  if (scope == Marker::Scope::kProcess) return OTF2_MARKER_SCOPE_LOCATION_GROUP;
  return OTF2_MARKER_SCOPE_SYSTEM_TREE_NODE;
}

/// Categories and markers, in the order of their first error.
class MarkerFile {
 public:
  explicit MarkerFile(OTF2_MarkerWriter* file) : file_(file) {}

  /// All categories, whether there are markers of them or not: a number means the same in each
  /// archive.
  void define() {
    for (uint32_t kind = 0; kind < kMarkerKindCount; ++kind) {
      const auto one = static_cast<MarkerKind>(kind);
      note(OTF2_MarkerWriter_WriteDefMarker(file_, kind, kGroup, marker_category(one),
                                            severity_of(one)));
    }
    note(OTF2_MarkerWriter_WriteDefMarker(file_, kLeftOut, kGroup, "markers left out",
                                          OTF2_SEVERITY_LOW));
  }

  void add(const Marker& marker, const TimeRange& range, const GlobalDefinitions& definitions) {
    const uint64_t start_ns = std::clamp(marker.time_ns, range.start_ns, range.end_ns);
    const uint64_t end_ns =
        std::clamp(marker.time_ns + marker.duration_ns, range.start_ns, range.end_ns);
    const uint64_t id = marker.scope == Marker::Scope::kNode
                            ? definitions.tree_node(static_cast<uint32_t>(marker.scope_id))
                            : marker.scope_id;
    note(OTF2_MarkerWriter_WriteMarker(file_, start_ns, end_ns - start_ns,
                                       static_cast<OTF2_MarkerRef>(marker.kind),
                                       scope_of(marker.scope), id, marker.text.c_str()));
  }

  void add_left_out(const std::string& category, uint64_t count, const TimeRange& range) {
    const std::string text =
        grouped(count) + " more of \"" + category + "\" have no room here; aon.json has the sums";
    note(OTF2_MarkerWriter_WriteMarker(file_, range.start_ns, 0, kLeftOut, OTF2_MARKER_SCOPE_GLOBAL,
                                       OTF2_UNDEFINED_UINT64, text.c_str()));
  }

  OTF2_ErrorCode error() const { return error_; }

 private:
  void note(OTF2_ErrorCode code) {
    if (code != OTF2_SUCCESS && error_ == OTF2_SUCCESS) error_ = code;
  }

  OTF2_MarkerWriter* file_;
  OTF2_ErrorCode error_ = OTF2_SUCCESS;
};

}  // namespace

Status write_markers(OTF2_Archive* archive, const Markers& markers, const TimeRange& range,
                     const GlobalDefinitions& definitions) {
  const std::map<std::string, uint64_t> left_out = left_out_counts(markers);
  const std::vector<const Marker*> all = markers.by_time();
  if (all.empty() && left_out.empty()) return {};
  OTF2_MarkerWriter* writer = OTF2_Archive_GetMarkerWriter(archive);
  if (writer == nullptr) return Error{Code::kIo, "OTF2 archive: cannot create traces.marker"};
  MarkerFile file(writer);
  file.define();
  for (const auto& [category, count] : left_out) file.add_left_out(category, count, range);
  for (const Marker* marker : all) file.add(*marker, range, definitions);
  Status status = check(file.error(), "write markers");
  if (!status) return status;
  return check(OTF2_Archive_CloseMarkerWriter(archive, writer), "write traces.marker");
}

std::map<std::string, uint64_t> left_out_counts(const Markers& markers) {
  std::map<std::string, uint64_t> counts;
  for (size_t kind = 0; kind < kMarkerKindCount; ++kind) {
    const auto one = static_cast<MarkerKind>(kind);
    if (const uint64_t count = markers.left_out_count(one); count != 0)
      counts[marker_category(one)] = count;
  }
  return counts;
}

}  // namespace aon::writers::otf2
