#include "writers/symbols/debug_files.h"

#include <dlfcn.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "core/base/file.h"
#ifdef AON_HAS_LZMA
#include <lzma.h>
#endif

namespace aon::symbols {

namespace {

/// "DIR/.build-id/8d/55b2...SUFFIX"; ids of fewer than two bytes have no such path.
std::string id_path(const std::string& directory, const std::string& id, const char* suffix) {
  const std::string digits = hex(id);
  return directory + "/.build-id/" + digits.substr(0, 2) + "/" + digits.substr(2) + suffix;
}

std::optional<ElfFile> open_with_id(const std::string& path, const std::string& build_id) {
  Result<ElfFile> file = ElfFile::open(path);
  if (!file || file->build_id() != build_id) return std::nullopt;
  return std::move(*file);
}

enum class Wanted { kProgram, kDebugFile };

/// Asks the servers of DEBUGINFOD_URLS; what they send lies in debuginfod's own cache.
std::optional<ElfFile> ask_debuginfod(const std::string& id, Wanted wanted) {
  const char* urls = std::getenv("DEBUGINFOD_URLS");
  if (urls == nullptr || *urls == 0) return std::nullopt;
  void* library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  // As elfutils/debuginfod.h declares them.
  const auto begin = reinterpret_cast<void* (*)()>(dlsym(library, "debuginfod_begin"));
  const auto end = reinterpret_cast<void (*)(void*)>(dlsym(library, "debuginfod_end"));
  const auto find = reinterpret_cast<int (*)(void*, const unsigned char*, int, char**)>(
      dlsym(library, wanted == Wanted::kProgram ? "debuginfod_find_executable"
                                                : "debuginfod_find_debuginfo"));
  if (begin == nullptr || end == nullptr || find == nullptr) return std::nullopt;
  void* client = begin();
  if (client == nullptr) return std::nullopt;
  char* path = nullptr;
  const UniqueFd fd(find(client, reinterpret_cast<const unsigned char*>(id.data()),
                         static_cast<int>(id.size()), &path));
  end(client);
  if (!fd || path == nullptr) return std::nullopt;
  const std::string name = path;
  std::free(path);
  return open_with_id(name, id);
}

#ifdef AON_HAS_LZMA
/// The checksum that .gnu_debuglink holds: CRC-32 of IEEE 802.3, as liblzma has it.
std::optional<uint32_t> checksum(const std::string& path) {
  const Result<UniqueFd> fd = open_file(path, O_RDONLY | O_NONBLOCK);
  if (!fd) return std::nullopt;
  std::vector<uint8_t> part(1 << 20);
  uint32_t crc = 0;
  for (uint64_t at = 0;;) {
    const Result<size_t> got = read_at(fd->get(), part.data(), part.size(), at);
    if (!got) return std::nullopt;
    if (*got == 0) return crc;
    crc = lzma_crc32(part.data(), *got, crc);
    at += *got;
  }
}
#else
std::optional<uint32_t> checksum(const std::string&) { return std::nullopt; }
#endif

std::optional<ElfFile> follow_debuglink(const ElfFile& file, const DebugSearch& search) {
  GElf_Word crc = 0;
  const char* link = dwelf_elf_gnu_debuglink(file.elf(), &crc);
  if (link == nullptr || *link == 0) return std::nullopt;
  const std::string name = link;
  const size_t slash = file.path().rfind('/');
  const std::string folder = slash == std::string::npos ? "." : file.path().substr(0, slash);
  std::vector<std::string> paths = {folder + "/" + name, folder + "/.debug/" + name};
  for (const std::string& directory : search.directories)
    paths.push_back(directory + "/" + folder + "/" + name);
  for (const std::string& path : paths) {
    Result<ElfFile> found = ElfFile::open(path);
    if (!found || path == file.path()) continue;
    const bool has_ids = !file.build_id().empty() && !found->build_id().empty();
    if (has_ids ? file.build_id() == found->build_id() : checksum(path) == crc)
      return std::move(*found);
  }
  return std::nullopt;
}

}  // namespace

std::string hex(const std::string& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += kDigits[static_cast<uint8_t>(c) >> 4];
    text += kDigits[c & 15];
  }
  return text;
}

std::optional<ElfFile> find_program(const std::string& build_id, const DebugSearch& search) {
  if (build_id.size() < 2) return std::nullopt;
  for (const std::string& directory : search.directories)
    if (auto file = open_with_id(id_path(directory, build_id, ""), build_id)) return file;
  if (!search.allows_debuginfod) return std::nullopt;
  return ask_debuginfod(build_id, Wanted::kProgram);
}

std::optional<ElfFile> find_debug_file(const ElfFile& file, const DebugSearch& search) {
  const std::string& id = file.build_id();
  if (id.size() >= 2) {
    for (const std::string& directory : search.directories)
      if (auto found = open_with_id(id_path(directory, id, ".debug"), id)) return found;
  }
  if (auto found = follow_debuglink(file, search)) return found;
  if (!search.allows_debuginfod || id.size() < 2) return std::nullopt;
  return ask_debuginfod(id, Wanted::kDebugFile);
}

#ifdef AON_HAS_LZMA
Result<ElfFile> unpack_debugdata(const ElfFile& file) {
  constexpr size_t kMaxUnpackedBytes = size_t{256} << 20;
  constexpr uint64_t kMaxDecoderBytes = uint64_t{128} << 20;
  const std::string label = file.path() + ": .gnu_debugdata";
  const ElfSection* section = file.section(".gnu_debugdata");
  const Elf_Data* data = section != nullptr ? file.data(*section) : nullptr;
  if (data == nullptr) return Error{Code::kNotFound, label + ": none"};
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&stream, kMaxDecoderBytes, 0) != LZMA_OK)
    return Error{Code::kUnavailable, label + ": no decoder"};
  std::vector<uint8_t> bytes(1 << 16);
  stream.next_in = static_cast<const uint8_t*>(data->d_buf);
  stream.avail_in = data->d_size;
  lzma_ret state = LZMA_OK;
  while (state == LZMA_OK && bytes.size() < kMaxUnpackedBytes) {
    if (stream.total_out == bytes.size()) bytes.resize(bytes.size() * 2);
    stream.next_out = bytes.data() + stream.total_out;
    stream.avail_out = bytes.size() - stream.total_out;
    state = lzma_code(&stream, LZMA_FINISH);
  }
  bytes.resize(stream.total_out);
  lzma_end(&stream);
  if (state != LZMA_STREAM_END) return Error{Code::kDamaged, label + ": damaged"};
  return ElfFile::from_memory(std::move(bytes), label);
}
#else
Result<ElfFile> unpack_debugdata(const ElfFile& file) {
  return Error{Code::kUnavailable, file.path() + ": .gnu_debugdata: built without liblzma"};
}
#endif

}  // namespace aon::symbols
