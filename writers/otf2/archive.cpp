#include "writers/otf2/archive.h"

#include <array>
#include <cstdarg>
#include <cstdlib>

namespace aon::writers::otf2 {
namespace {

constexpr uint64_t kEventChunkBytes = OTF2_CHUNK_SIZE_MIN;
constexpr uint64_t kDefinitionChunkBytes = OTF2_CHUNK_SIZE_DEFINITIONS_DEFAULT;
constexpr size_t kEventChunks = 2;
constexpr size_t kMaxChunks = 64;

/// Chunks of one OTF2 buffer. When no further chunk is given OTF2 writes the buffer out and frees
/// all of them.
struct Chunks {
  std::array<void*, kMaxChunks> chunk;
  size_t count = 0;
};

void* allocate(void*, OTF2_FileType type, OTF2_LocationRef, void** buffer, uint64_t bytes) {
  if (*buffer == nullptr) *buffer = new Chunks;
  auto* chunks = static_cast<Chunks*>(*buffer);
  const size_t limit = type == OTF2_FILETYPE_EVENTS ? kEventChunks : kMaxChunks;
  if (chunks->count >= limit) return nullptr;
  void* memory = std::malloc(bytes);
  if (memory != nullptr) chunks->chunk[chunks->count++] = memory;
  return memory;
}

void free_all(void*, OTF2_FileType, OTF2_LocationRef, void** buffer, bool final) {
  auto* chunks = static_cast<Chunks*>(*buffer);
  if (chunks == nullptr) return;
  for (size_t i = 0; i < chunks->count; ++i) std::free(chunks->chunk[i]);
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

/// Errors are reported by Status, not on stderr.
OTF2_ErrorCode stay_silent(void*, const char*, uint64_t, const char*, OTF2_ErrorCode code,
                           const char*, va_list) {
  return code;
}

}  // namespace

Status check(OTF2_ErrorCode code, const std::string& what) {
  if (code == OTF2_SUCCESS) return {};
  return Error{Code::kIo, "OTF2 archive: cannot " + what + ": " + OTF2_Error_GetName(code) + " (" +
                              OTF2_Error_GetDescription(code) + ")"};
}

Result<ArchiveHandle> create_archive(const std::filesystem::path& folder) {
  OTF2_Error_RegisterCallback(stay_silent, nullptr);
  ArchiveHandle archive(OTF2_Archive_Open(folder.c_str(), "traces", OTF2_FILEMODE_WRITE,
                                          kEventChunkBytes, kDefinitionChunkBytes,
                                          OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE));
  if (!archive) {
    return Error{Code::kIo, "OTF2 archive: cannot create " + (folder / "traces.otf2").string()};
  }
  OTF2_ErrorCode code = OTF2_Archive_SetMemoryCallbacks(archive.get(), &kMemoryCallbacks, nullptr);
  if (code == OTF2_SUCCESS) {
    code = OTF2_Archive_SetFlushCallbacks(archive.get(), &kFlushCallbacks, nullptr);
  }
  if (code == OTF2_SUCCESS) code = OTF2_Archive_SetSerialCollectiveCallbacks(archive.get());
  if (code == OTF2_SUCCESS) code = OTF2_Archive_SetCreator(archive.get(), "aon " AON_VERSION);
  Status status = check(code, "create " + (folder / "traces.otf2").string());
  if (!status) return status.error();
  return archive;
}

}  // namespace aon::writers::otf2
