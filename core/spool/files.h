/// Names of the files in a node's folder of the spool (format.h), written and parsed in one place,
/// and the links that stand for such folders.   Thread: any.
#pragma once

#include <cstddef>
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
/// hwloc's XML and, as a last line, a comment with its checksum: parsers of XML do not see it, and
/// hwloc may crash on a document that is damaged.
constexpr const char* kTopologyFile = "topology.xml";
constexpr size_t kMaxTopologyBytes = 64u << 20;
std::string topology_file(const std::string& xml);
/// The XML of such a file's text.   Errors: kDamaged.
Result<std::string> topology_xml(std::string_view text);

/// In a node's folder that was not recorded in this job directory: the real path of where it was
/// joined from (tools/joining.h), or that a courier brought it (core/delivery), there or here.
constexpr const char* kOriginFile = "joined-from";
constexpr const char* kBroughtOrigin = "courier";

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
