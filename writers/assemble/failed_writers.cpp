#include "writers/assemble/failed_writers.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "writers/assemble/publish.h"
#include "writers/assemble/writer_set.h"

namespace aon::writers {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kNoSpaceBytes = 64u << 10;

/// Takes away what a failed writer left, so that no half file is published.
void remove_failed(const fs::path& staging, const WriterSlot& slot) {
  if (slot.name == kProfileName) {
    remove_with_room(staging / "profile.h5");
    remove_with_room(staging / "series");
    return;
  }
  if (slot.name == kSamplesName) {
    remove_with_room(staging / "samples");
    return;
  }
  for (const char* name : {"traces", "traces.def", "traces.marker", "traces.otf2"})
    remove_with_room(staging / name);
}

/// Libraries do not say why they could not write.
std::string with_cause(const std::string& message, const fs::path& folder) {
  const std::string cause = strerror(ENOSPC);
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (error || space.available > kNoSpaceBytes || message.find(cause) != std::string::npos)
    return message;
  return message + ": " + cause;
}

/// Without samples their writer makes no file.
bool has_files(const fs::path& staging, const WriterSlot& slot) {
  if (slot.name != kSamplesName) return slot.makes_files;
  std::error_code error;
  return fs::exists(staging / "samples", error);
}

}  // namespace

Status collect_failures(const fs::path& staging, const std::vector<WriterSlot>& writers,
                        const std::vector<std::string>& lacks, AssembleReport* report) {
  bool has_result = false;
  std::vector<std::string> failures;
  for (const WriterSlot& slot : writers) {
    has_result = has_result || (slot.status && has_files(staging, slot));
    if (slot.status) continue;
    failures.push_back(slot.name + ": " + with_cause(slot.status.error().message, staging));
    if (slot.makes_files) remove_failed(staging, slot);
  }
  if (!has_result && !failures.empty()) return Error{Code::kIo, failures.front()};
  failures.insert(failures.end(), lacks.begin(), lacks.end());
  std::vector<std::string> lines;
  for (const std::string& failure : failures)
    lines.push_back(failure + "; run: aon finalize " + staging.parent_path().string());
  report->warnings.insert(report->warnings.begin(), lines.begin(), lines.end());
  report->failures = std::move(failures);
  return {};
}

}  // namespace aon::writers
