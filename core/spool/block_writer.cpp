#include "core/spool/block_writer.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "core/spool/crc32c.h"

namespace aon::spool {

struct BlockSealer::State {
  ZSTD_CCtx* context = nullptr;

  explicit State(int zstd_level) : context(ZSTD_createCCtx()) {
    if (context == nullptr) return;
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, zstd_level);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 1);
  }
  ~State() { ZSTD_freeCCtx(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

BlockSealer::BlockSealer(int zstd_level) : state_(std::make_unique<State>(zstd_level)) {}
BlockSealer::~BlockSealer() = default;

Status BlockSealer::seal(BlockHeader header, std::span<const uint8_t> payload,
                         std::vector<uint8_t>* out) {
  if (payload.size() > kMaxBlockBytes) {
    return Error{Code::kInvalid, "block payload of " + std::to_string(payload.size()) + " bytes"};
  }
  if (state_->context == nullptr) return Error{Code::kUnavailable, "no memory for zstd"};
  constexpr size_t kPrefixBytes = 8 + sizeof(BlockHeader);
  const size_t start = out->size();
  const size_t bound = ZSTD_compressBound(payload.size());
  out->resize(start + kPrefixBytes + bound);
  const size_t bytes = ZSTD_compress2(state_->context, out->data() + start + kPrefixBytes, bound,
                                      payload.data(), payload.size());
  if (ZSTD_isError(bytes) != 0) {
    out->resize(start);
    return Error{Code::kBug, std::string("zstd: ") + ZSTD_getErrorName(bytes)};
  }
  header.magic = kBlockMagic;
  header.version = kSpoolFormat;
  header.raw_bytes = static_cast<uint32_t>(payload.size());
  header.compressed_bytes = static_cast<uint32_t>(bytes);
  header.crc32c = crc32c(&header, offsetof(BlockHeader, crc32c));
  const uint32_t frame[2] = {kSkippableMagic, sizeof(BlockHeader)};
  std::memcpy(out->data() + start, frame, sizeof(frame));
  std::memcpy(out->data() + start + sizeof(frame), &header, sizeof(header));
  out->resize(start + kPrefixBytes + bytes);
  return {};
}

void renumber_block(uint8_t* block, uint64_t block_sequence) noexcept {
  uint8_t* at = block + sizeof(uint32_t[2]);
  BlockHeader header;
  std::memcpy(&header, at, sizeof(header));
  header.block_sequence = block_sequence;
  header.crc32c = crc32c(&header, offsetof(BlockHeader, crc32c));
  std::memcpy(at, &header, sizeof(header));
}

void RecordBlockWriter::begin(uint32_t process, uint16_t slot, uint16_t context,
                              uint64_t first_sequence, OpenStack* stack) {
  header_ = {};
  header_.kind = BlockKind::kRecords;
  header_.process = process;
  header_.slot = slot;
  header_.context = context;
  header_.first_sequence = first_sequence;
  encoder_.begin(stack);
}

Result<BlockHeader> RecordBlockWriter::seal(uint64_t block_sequence, std::vector<uint8_t>* out) {
  payload_.clear();
  const RunSummary summary = encoder_.finish(&payload_);
  header_.block_sequence = block_sequence;
  header_.first_ticks = summary.first_ticks;
  header_.last_ticks = summary.last_ticks;
  header_.record_count = summary.record_count;
  header_.counted_count = summary.counted_count;
  if (summary.record_count == 0) return header_;
  if (Status status = sealer_.seal(header_, payload_, out); !status) return status.error();
  return header_;
}

void DefinitionBlockWriter::add(uint32_t type, std::span<const uint8_t> payload) {
  const uint32_t prefix[2] = {type, static_cast<uint32_t>(payload.size())};
  const auto* from = reinterpret_cast<const uint8_t*>(prefix);
  payload_.insert(payload_.end(), from, from + sizeof(prefix));
  payload_.insert(payload_.end(), payload.begin(), payload.end());
  ++count_;
}

void DefinitionBlockWriter::add_parts(DefinitionType type, const void* fixed, size_t fixed_bytes,
                                      std::initializer_list<std::string_view> strings) {
  std::vector<uint8_t> payload(fixed_bytes);
  if (fixed_bytes != 0) std::memcpy(payload.data(), fixed, fixed_bytes);
  for (std::string_view text : strings) {
    text = text.substr(0, text.find('\0'));
    payload.insert(payload.end(), text.begin(), text.end());
    payload.push_back(0);
  }
  add(static_cast<uint32_t>(type), payload);
}

Status DefinitionBlockWriter::seal(BlockSealer* sealer, uint32_t process, uint64_t block_sequence,
                                   uint64_t ticks, std::vector<uint8_t>* out) {
  BlockHeader header{};
  header.kind = BlockKind::kDefinitions;
  header.process = process;
  header.block_sequence = block_sequence;
  header.first_ticks = ticks;
  header.last_ticks = ticks;
  header.record_count = count_;
  Status status = sealer->seal(header, payload_, out);
  payload_.clear();
  count_ = 0;
  return status;
}

}  // namespace aon::spool
