/// Thin owner of an OTF2_Archive handle in writing mode, with bounded buffers and OTF2's error codes
/// turned into Status. Owner: one Otf2Writer.   Thread: one.
#pragma once

#include <otf2/otf2.h>

#include <filesystem>
#include <memory>
#include <string>

#include "core/base/result.h"

namespace aon::writers::otf2 {

/// Ok, or an error that names `what` and OTF2's reason.
Status check(OTF2_ErrorCode code, const std::string& what);

struct ArchiveCloser {
  void operator()(OTF2_Archive* archive) const { OTF2_Archive_Close(archive); }
};
using ArchiveHandle = std::unique_ptr<OTF2_Archive, ArchiveCloser>;

/// Creates the archive `folder`/traces with serial callbacks and buffers of at most two chunks.
Result<ArchiveHandle> create_archive(const std::filesystem::path& folder);

}  // namespace aon::writers::otf2
