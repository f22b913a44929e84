#include "core/spool/block_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <zstd.h>

#include <cerrno>
#include <cstring>

#include "core/base/file.h"
#include "core/spool/crc32c.h"

namespace aon::spool {
namespace {

constexpr size_t kWindowBytes = 64 * 1024;
/// zstd never needs more than this for a payload that may be stored.
constexpr uint32_t kMaxCompressedBytes = kMaxBlockBytes + kMaxBlockBytes / 128 + 1024;

}  // namespace

struct PayloadReader::State {
  ZSTD_DCtx* context = ZSTD_createDCtx();
  std::vector<uint8_t> compressed;
  std::vector<uint8_t> payload;

  State() = default;
  ~State() { ZSTD_freeDCtx(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

PayloadReader::PayloadReader() : state_(std::make_unique<State>()) {}
PayloadReader::~PayloadReader() = default;
PayloadReader::PayloadReader(PayloadReader&&) noexcept = default;
PayloadReader& PayloadReader::operator=(PayloadReader&&) noexcept = default;

Result<std::span<const uint8_t>> PayloadReader::read(int fd, const BlockPosition& position) {
  State& s = *state_;
  const BlockHeader& header = position.header;
  if (s.context == nullptr) return Error{Code::kUnavailable, "no memory for zstd"};
  if (s.compressed.size() < header.compressed_bytes) s.compressed.resize(header.compressed_bytes);
  if (s.payload.size() < header.raw_bytes) s.payload.resize(header.raw_bytes);
  const Result<size_t> got = read_at(fd, s.compressed.data(), header.compressed_bytes,
                                     position.offset + kBlockPrefixBytes);
  if (!got) return got.error();
  if (*got != header.compressed_bytes) return Error{Code::kDamaged, "block is cut off"};
  const size_t bytes = ZSTD_decompressDCtx(s.context, s.payload.data(), header.raw_bytes,
                                           s.compressed.data(), header.compressed_bytes);
  if (ZSTD_isError(bytes) != 0 || bytes != header.raw_bytes) {
    return Error{Code::kDamaged, "block does not decompress"};
  }
  return std::span<const uint8_t>(s.payload.data(), bytes);
}

bool parse_block_prefix(std::span<const uint8_t> prefix, BlockHeader* header) noexcept {
  if (prefix.size() < kBlockPrefixBytes) return false;
  uint32_t frame[2];
  std::memcpy(frame, prefix.data(), sizeof(frame));
  if (frame[0] != kSkippableMagic || frame[1] != sizeof(BlockHeader)) return false;
  std::memcpy(header, prefix.data() + sizeof(frame), sizeof(*header));
  if (header->magic != kBlockMagic || header->version != kSpoolFormat) return false;
  if (header->crc32c != crc32c(header, offsetof(BlockHeader, crc32c))) return false;
  const bool is_known =
      header->kind == BlockKind::kDefinitions || header->kind == BlockKind::kRecords;
  return is_known && header->raw_bytes <= kMaxBlockBytes &&
         header->compressed_bytes <= kMaxCompressedBytes &&
         (header->kind != BlockKind::kRecords || header->record_count <= kMaxBlockRecords) &&
         header->counted_count <= header->record_count;
}

Result<BlockFileReader> BlockFileReader::open(const std::string& path) {
  Result<UniqueFd> fd = open_file(path, O_RDONLY | O_NOFOLLOW);
  if (!fd) return fd.error();
  BlockFileReader reader;
  reader.fd_ = std::move(*fd);
  return reader;
}

Result<bool> BlockFileReader::read_prefix(uint64_t offset, BlockHeader* header) {
  uint8_t prefix[kBlockPrefixBytes];
  const Result<size_t> got = read_at(fd_.get(), prefix, sizeof(prefix), offset);
  if (!got) return got.error();
  return parse_block_prefix({prefix, *got}, header);
}

/// Offset of the next intact header at or behind `from`, or kNoOffset.
Result<uint64_t> BlockFileReader::search_prefix(uint64_t from) {
  window_.resize(kWindowBytes);
  for (uint64_t offset = from;; offset += kWindowBytes - (kBlockPrefixBytes - 1)) {
    const Result<size_t> got = read_at(fd_.get(), window_.data(), kWindowBytes, offset);
    if (!got) return got.error();
    if (*got < kBlockPrefixBytes) return kNoOffset;
    const uint32_t magic = kSkippableMagic;
    const size_t last = *got - kBlockPrefixBytes;
    for (size_t at = 0; at <= last; ++at) {
      if (std::memcmp(window_.data() + at, &magic, sizeof(magic)) != 0) continue;
      BlockHeader header;
      if (parse_block_prefix({window_.data() + at, kBlockPrefixBytes}, &header)) return offset + at;
    }
    if (*got < kWindowBytes) return kNoOffset;
  }
}

/// Counts the blocks that should stand between the last header and this one. `has_junk`: something
/// else stands there.
void BlockFileReader::count_gap(const BlockHeader& header, bool has_junk) {
  if (header.block_sequence > next_block_sequence_) {
    scan_.damaged_blocks += header.block_sequence - next_block_sequence_;
  } else if (has_junk) {
    ++scan_.damaged_blocks;
  }
  next_block_sequence_ = header.block_sequence + 1;
}

/// Looks for the next header when there is none where it should be. The search starts inside the
/// last block: a header there is a sign that its frame was cut off and written over.
Result<uint64_t> BlockFileReader::find_behind_damage() {
  struct stat info;
  if (::fstat(fd_.get(), &info) != 0) return errno_error("stat", "spool file", errno);
  const auto file_bytes = static_cast<uint64_t>(info.st_size);
  if (next_offset_ == file_bytes) return kNoOffset;
  const bool has_block = scan_.intact_headers != 0;
  Result<uint64_t> found = search_prefix(has_block ? current_.offset + kBlockPrefixBytes : 0);
  // Behind a block that is cut off at the end of the file nothing else is damaged.
  const bool is_cut = has_block && next_offset_ > file_bytes;
  if (found && *found == kNoOffset && !is_cut) ++scan_.damaged_blocks;
  return found;
}

Result<bool> BlockFileReader::next(BlockPosition* position) {
  if (at_end_) return false;
  uint64_t offset = next_offset_;
  BlockHeader header;
  Result<bool> is_intact = read_prefix(offset, &header);
  const bool was_searched = is_intact && !*is_intact;
  if (was_searched) {
    const Result<uint64_t> found = find_behind_damage();
    if (!found) return found.error();
    at_end_ = *found == kNoOffset;
    if (at_end_) return false;
    offset = *found;
    is_intact = read_prefix(offset, &header);
  }
  if (!is_intact || !*is_intact) return is_intact;
  count_gap(header, offset > next_offset_);
  ++scan_.intact_headers;
  current_ = *position = {offset, header};
  next_offset_ = offset + kBlockPrefixBytes + header.compressed_bytes;
  return true;
}

Result<std::span<const uint8_t>> BlockFileReader::payload() {
  Result<std::span<const uint8_t>> payload = payload_reader_.read(fd_.get(), current_);
  if (!payload && payload.error().code == Code::kDamaged) ++scan_.damaged_blocks;
  return payload;
}

Result<ScanResult> scan_headers(const std::string& path, void (*visit)(const BlockPosition&, void*),
                                void* argument) {
  Result<BlockFileReader> reader = BlockFileReader::open(path);
  if (!reader) return reader.error();
  struct stat info;
  if (::fstat(reader->fd(), &info) != 0) return errno_error("stat", path, errno);
  ScanResult cut;
  BlockPosition position;
  for (;;) {
    const Result<bool> more = reader->next(&position);
    if (!more) return more.error();
    if (!*more) break;
    const uint64_t end = position.offset + kBlockPrefixBytes + position.header.compressed_bytes;
    if (end > static_cast<uint64_t>(info.st_size)) {
      ++cut.damaged_blocks;
      continue;
    }
    cut.valid_bytes = end;
    if (visit != nullptr) visit(position, argument);
  }
  ScanResult result = reader->scan();
  result.damaged_blocks += cut.damaged_blocks;
  result.valid_bytes = cut.valid_bytes;
  return result;
}

}  // namespace aon::spool
