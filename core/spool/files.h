/// Names of the files in a node's folder of the spool (format.h), written and parsed in one place,
/// and the links that stand for such folders.   Thread: any.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace aon::spool {

constexpr const char* kDefinitionsFile = "definitions.aon";
constexpr const char* kTopologyFile = "topology.xml";

/// In the job directory while several processes make its archive (writers/assemble/shares.h).
constexpr const char* kSharesFolder = ".assemble-shares";
constexpr const char* kSharePlan = ".assemble-shares/plan";

/// Name parts of a segment of records. `slot` is set where the segment belongs to one thread slot.
struct SegmentName {
  uint32_t process = 0;
  std::optional<uint16_t> slot;
  uint32_t segment = 0;
  friend auto operator<=>(const SegmentName&, const SegmentName&) = default;
};

/// "pP.S.aon" or "pP.tT.S.aon"; the node's own (kNodeProcess) is "node.S.aon".
std::string segment_file_name(const SegmentName& name);
std::optional<SegmentName> parse_segment_file_name(std::string_view file_name);

/// A node folder that --spool-dir put elsewhere, and that is not there.
struct MissingLink {
  std::filesystem::path link;    ///< DIR/spool/NODE
  std::filesystem::path target;  ///< what it points to
};
/// The missing ones of job directory `folder`, by name.
std::vector<MissingLink> find_missing_links(const std::filesystem::path& folder);
/// One line that names link and target.
std::string describe(const MissingLink& missing);

/// All segments in `folder`, by process, in order of (slot, segment). One pass over the folder.
Result<std::map<uint32_t, std::vector<SegmentName>>> list_segments(
    const std::filesystem::path& folder);

}  // namespace aon::spool
