#include "core/spool/files.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <system_error>

#include "core/spool/crc32c.h"
#include "core/spool/format.h"

namespace aon::spool {
namespace {

constexpr std::string_view kSuffix = ".aon";
constexpr std::string_view kNodePrefix = "node.";

/// Takes a decimal number without leading zeros off the front of `text`.
template <class T>
bool take_number(std::string_view* text, T* value) {
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, *value);
  if (error != std::errc() || stop == text->data()) return false;
  if ((*text)[0] == '0' && stop != text->data() + 1) return false;
  text->remove_prefix(static_cast<size_t>(stop - text->data()));
  return true;
}

bool take_text(std::string_view* text, std::string_view expected) {
  if (!text->starts_with(expected)) return false;
  text->remove_prefix(expected.size());
  return true;
}

std::string checksum_line(std::string_view text) {
  char line[40];
  std::snprintf(line, sizeof(line), "<!-- crc32c %08x -->\n", crc32c(text.data(), text.size()));
  return line;
}

}  // namespace

std::string topology_file(const std::string& xml) { return xml + checksum_line(xml); }

Result<std::string> topology_xml(std::string_view text) {
  const size_t line_bytes = checksum_line({}).size();
  const std::string_view xml = text.substr(0, text.size() - std::min(line_bytes, text.size()));
  if (text.substr(xml.size()) != checksum_line(xml))
    return Error{Code::kDamaged, std::string(kTopologyFile) + " of the spool is damaged"};
  return std::string(xml);
}

std::string segment_file_name(const SegmentName& name) {
  std::string text =
      name.process == kNodeProcess ? "node." : "p" + std::to_string(name.process) + ".";
  if (name.slot) text += "t" + std::to_string(*name.slot) + ".";
  return text + std::to_string(name.segment) + std::string(kSuffix);
}

std::optional<SegmentName> parse_segment_file_name(std::string_view file_name) {
  SegmentName name;
  if (take_text(&file_name, kNodePrefix)) {
    name.process = kNodeProcess;
  } else if (!take_text(&file_name, "p") || !take_number(&file_name, &name.process) ||
             !take_text(&file_name, ".")) {
    return std::nullopt;
  }
  if (take_text(&file_name, "t")) {
    uint16_t slot = 0;
    if (!take_number(&file_name, &slot) || !take_text(&file_name, ".")) return std::nullopt;
    name.slot = slot;
  }
  if (!take_number(&file_name, &name.segment) || file_name != kSuffix) return std::nullopt;
  return name;
}

std::vector<MissingLink> find_missing_links(const std::filesystem::path& folder) {
  std::vector<MissingLink> missing;
  std::error_code error;
  std::filesystem::directory_iterator at(folder / "spool", error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    std::error_code ignored;
    if (!at->is_symlink(ignored) || at->is_directory(ignored)) continue;
    missing.push_back({at->path(), std::filesystem::read_symlink(at->path(), ignored)});
  }
  std::sort(missing.begin(), missing.end(),
            [](const MissingLink& a, const MissingLink& b) { return a.link < b.link; });
  return missing;
}

std::string describe(const MissingLink& missing) {
  return missing.link.string() + " is a link to " + missing.target.string() +
         ", which is not there; bring it back, or work where it is";
}

Result<std::map<uint32_t, std::vector<SegmentName>>> list_segments(
    const std::filesystem::path& folder) {
  std::error_code error;
  std::map<uint32_t, std::vector<SegmentName>> segments;
  std::filesystem::directory_iterator at(folder, error);  // whose ++ throws
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const std::optional<SegmentName> name = parse_segment_file_name(at->path().filename().string());
    if (name) segments[name->process].push_back(*name);
  }
  if (error)
    return Error{Code::kNotFound, "read folder " + folder.string() + ": " + error.message()};
  for (auto& [process, names] : segments) std::sort(names.begin(), names.end());
  return segments;
}

}  // namespace aon::spool
