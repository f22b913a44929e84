#include "core/spool/indexed_block.h"

#include <fcntl.h>

#include "core/base/file.h"

namespace aon::spool {

Result<IndexedBlockReader::Opened> IndexedBlockReader::open(const BlockEntry& block) {
  if (file_ != block.file) {
    Result<UniqueFd> fd = open_file(index_.file(block.file), O_RDONLY | O_NOFOLLOW);
    if (!fd && fd.error().code == Code::kNotFound) return Opened::kGone;
    if (!fd) return fd.error();
    fd_ = std::move(*fd);
    file_ = block.file;
  }
  BlockPosition position{block.offset, {}};
  position.header.raw_bytes = block.raw_bytes;
  position.header.compressed_bytes = block.compressed_bytes;
  const Result<std::span<const uint8_t>> payload = payload_reader_.read(fd_.get(), position);
  if (!payload && payload.error().code != Code::kDamaged) return payload.error();
  if (!payload || !decoder_.begin(*payload, block.record_count)) return Opened::kDamaged;
  return Opened::kYes;
}

}  // namespace aon::spool
