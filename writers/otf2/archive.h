/// Thin owner of an OTF2_Archive handle in writing mode, with bounded buffers and OTF2's error
/// codes turned into Status. What fails inside OTF2 comes out of it as an exception (guard.h).
/// Owner: one Otf2Writer.   Thread: one.
#pragma once

#include <otf2/otf2.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace aon::writers::otf2 {

/// Ok, or an error that names `what` and OTF2's reason.
Status check(OTF2_ErrorCode code, const std::string& what);

/// Memory for OTF2's buffers. Chunks are kept for the next location: fresh ones would cost a page
/// fault per 4 KiB and location.
class ChunkPool {
 public:
  ChunkPool() = default;
  ChunkPool(const ChunkPool&) = delete;
  ChunkPool& operator=(const ChunkPool&) = delete;
  ~ChunkPool();
  void* take(uint64_t bytes);
  void give(void* memory, uint64_t bytes);

 private:
  struct Chunk {
    void* memory;
    uint64_t bytes;
  };
  std::vector<Chunk> free_;
};

/// Who is done takes the archive out of its handle and closes it. One that is still there has
/// failed, or is a share's, whose event files are closed: OTF2 is not called for it any more.
struct ArchiveLeaver {
  std::unique_ptr<ChunkPool> pool;
  void operator()(OTF2_Archive* archive) const;
};
using ArchiveHandle = std::unique_ptr<OTF2_Archive, ArchiveLeaver>;

/// Creates the archive `folder`/traces with serial callbacks and buffers of at most two chunks.
/// `largest_definition_bytes` must fit into one chunk of definitions.
Result<ArchiveHandle> create_archive(const std::filesystem::path& folder,
                                     uint64_t largest_definition_bytes);

/// Moves the event files of locations that another process has written, of the archive
/// `from_folder`/traces into `to_folder`/traces, on one file system. Nothing when there are none.
/// The archive in `to_folder` is open or finished: OTF2 makes none where files are.
/// Errors: kIo; kDamaged, when a file of the same location is there already.
Status take_event_files(const std::filesystem::path& from_folder,
                        const std::filesystem::path& to_folder);

}  // namespace aon::writers::otf2
