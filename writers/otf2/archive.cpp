#include "writers/otf2/archive.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "writers/otf2/guard.h"

#if defined(__SANITIZE_ADDRESS__)
// Of an archive that was left, OTF2's own frames had some of the memory. A program may have a list
// of its own instead.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" [[gnu::weak]] const char* __lsan_default_suppressions();
const char* __lsan_default_suppressions() { return "leak:libopen-trace-format2\n"; }
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
#endif

namespace aon::writers::otf2 {
namespace {

constexpr uint64_t kEventChunkBytes = OTF2_CHUNK_SIZE_MIN;
constexpr size_t kEventChunks = 2;
constexpr size_t kMaxChunks = 64;
constexpr size_t kMaxPooledChunks = 8;
constexpr const char* kArchiveName = "traces";

/// Chunks of one OTF2 buffer. When no further chunk is given OTF2 writes the buffer out and frees
/// all of them.
struct Chunks {
  std::array<void*, kMaxChunks> chunk;
  size_t count = 0;
  uint64_t chunk_bytes = 0;
};

void* allocate(void* pool, OTF2_FileType type, OTF2_LocationRef, void** buffer, uint64_t bytes) {
  if (*buffer == nullptr) *buffer = new Chunks;
  auto* chunks = static_cast<Chunks*>(*buffer);
  const size_t limit = type == OTF2_FILETYPE_EVENTS ? kEventChunks : kMaxChunks;
  if (chunks->count >= limit) return nullptr;
  void* memory = static_cast<ChunkPool*>(pool)->take(bytes);
  if (memory != nullptr) chunks->chunk[chunks->count++] = memory;
  chunks->chunk_bytes = bytes;
  return memory;
}

void free_all(void* pool, OTF2_FileType, OTF2_LocationRef, void** buffer, bool final) {
  auto* chunks = static_cast<Chunks*>(*buffer);
  if (chunks == nullptr) return;
  for (size_t i = 0; i < chunks->count; ++i) {
    static_cast<ChunkPool*>(pool)->give(chunks->chunk[i], chunks->chunk_bytes);
  }
  chunks->count = 0;
  if (!final) return;
  delete chunks;
  *buffer = nullptr;
}

OTF2_FlushType flush_always(void*, OTF2_FileType, OTF2_LocationRef, void*, bool) {
  return OTF2_FLUSH;
}

// OTF2 keeps the pointers, so both tables live as long as the program.
const OTF2_MemoryCallbacks kMemoryCallbacks{allocate, free_all};
const OTF2_FlushCallbacks kFlushCallbacks{flush_always, nullptr};

constexpr size_t kSaidBytes = 512;

/// Leaves OTF2 at its first error, on which it calls this before it does anything else
/// (docs/decisions/014-otf2-failures.md).
///
/// Version 3.0.2 goes on with memory that it has freed after a failed write of 4 MiB, within the
/// same call where that is the one that closes the file, and calls a file closed whose last write
/// failed: neither a look at the codes nor leaving the archive alone afterwards would do. So the
/// error is thrown through OTF2: it is C with unwind tables, as our ABIs want them, it has nothing
/// locked, and what it was at is never touched again (ArchiveLeaver).
OTF2_ErrorCode leave(void*, const char*, uint64_t, const char*, OTF2_ErrorCode code,
                     const char* format, va_list arguments) {
  if (code <= OTF2_SUCCESS) return code;  // a warning
  std::array<char, kSaidBytes> said{};
  if (format != nullptr) std::vsnprintf(said.data(), said.size(), format, arguments);
  const std::string text = said.data();
  throw Failure(code, text.starts_with("POSIX: ") ? text.substr(7) : text);
}

}  // namespace

ChunkPool::~ChunkPool() {
  for (const Chunk& chunk : free_) std::free(chunk.memory);
}

void* ChunkPool::take(uint64_t bytes) {
  for (Chunk& chunk : free_) {
    if (chunk.bytes != bytes) continue;
    void* memory = chunk.memory;
    chunk = free_.back();
    free_.pop_back();
    return memory;
  }
  return std::malloc(bytes);
}

void ChunkPool::give(void* memory, uint64_t bytes) {
  if (free_.size() < kMaxPooledChunks) {
    free_.push_back({memory, bytes});
  } else {
    std::free(memory);
  }
}

Failure::Failure(OTF2_ErrorCode code, const std::string& said)
    : std::runtime_error("OTF2 archive: " + said + (said.empty() ? "" : ": ") +
                         OTF2_Error_GetDescription(code)) {}

/// The list is there for leak checkers.
void ArchiveLeaver::operator()(OTF2_Archive* archive) const {
  static auto* const left = new std::vector<OTF2_Archive*>;
  left->push_back(archive);
}

Status check(OTF2_ErrorCode code, const std::string& what) {
  if (code == OTF2_SUCCESS) return {};
  return Error{Code::kIo, "OTF2 archive: cannot " + what + ": " + OTF2_Error_GetName(code) + " (" +
                              OTF2_Error_GetDescription(code) + ")"};
}

Result<ArchiveHandle> create_archive(const std::filesystem::path& folder,
                                     uint64_t largest_definition_bytes) {
  OTF2_Error_RegisterCallback(leave, nullptr);
  const uint64_t definition_chunk_bytes = std::clamp<uint64_t>(
      std::bit_ceil(largest_definition_bytes), OTF2_CHUNK_SIZE_MIN, OTF2_CHUNK_SIZE_MAX);
  ArchiveHandle archive(
      OTF2_Archive_Open(folder.c_str(), kArchiveName, OTF2_FILEMODE_WRITE, kEventChunkBytes,
                        definition_chunk_bytes, OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE),
      ArchiveLeaver{std::make_unique<ChunkPool>()});
  if (!archive) {
    return Error{Code::kIo, "OTF2 archive: cannot create " + (folder / "traces.otf2").string()};
  }
  OTF2_ErrorCode code = OTF2_Archive_SetMemoryCallbacks(archive.get(), &kMemoryCallbacks,
                                                        archive.get_deleter().pool.get());
  if (code == OTF2_SUCCESS) {
    code = OTF2_Archive_SetFlushCallbacks(archive.get(), &kFlushCallbacks, nullptr);
  }
  if (code == OTF2_SUCCESS) code = OTF2_Archive_SetSerialCollectiveCallbacks(archive.get());
  if (code == OTF2_SUCCESS) code = OTF2_Archive_SetCreator(archive.get(), "aon " AON_VERSION);
  Status status = check(code, "create " + (folder / "traces.otf2").string());
  if (!status) return status.error();
  return archive;
}

Status take_event_files(const std::filesystem::path& from_folder,
                        const std::filesystem::path& to_folder) {
  namespace fs = std::filesystem;
  const fs::path from = from_folder / kArchiveName;
  const fs::path to = to_folder / kArchiveName;
  const auto failure = [](const std::error_code& error, const fs::path& path) {
    return Error{Code::kIo, "OTF2 archive: cannot move " + path.string() + ": " + error.message()};
  };
  std::error_code error;
  if (!fs::exists(from, error))
    return error && error != std::errc::no_such_file_or_directory ? Status(failure(error, from))
                                                                  : Status();
  fs::create_directories(to, error);
  if (error) return failure(error, to);
  std::vector<fs::path> files;  // first all names: the folder changes
  fs::directory_iterator entries(from, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    if (entries->path().extension() == ".evt") files.push_back(entries->path());
  }
  if (error) return failure(error, from);
  for (const fs::path& path : files) {
    const fs::path target = to / path.filename();
    std::error_code ignored;
    if (fs::exists(fs::symlink_status(target, ignored)))
      return Error{Code::kDamaged, "OTF2 archive: two files of one location: " + target.string()};
    fs::rename(path, target, error);
    if (error) return failure(error, path);
  }
  return {};
}

}  // namespace aon::writers::otf2
