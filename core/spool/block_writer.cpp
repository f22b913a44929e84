#include "core/spool/block_writer.h"

#define ZSTD_STATIC_LINKING_ONLY  // ZSTD_c_literalCompressionMode; refused, it is done without
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "core/spool/crc32c.h"

namespace aon::spool {

namespace {

/// Smaller payloads are one frame: the headers and tables of several would outweigh the gain.
constexpr size_t kLeastSplitBytes = 4096;

ZSTD_CCtx* new_context(int zstd_level) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  if (context == nullptr) return nullptr;
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, zstd_level);
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 1);
  return context;
}

/// Huffman codes without a search for repetitions: steps over all positions but the first.
ZSTD_CCtx* new_noise_context(int zstd_level) {
  ZSTD_CCtx* context = new_context(zstd_level);
  if (context == nullptr) return nullptr;
  const auto is_set = [context](ZSTD_cParameter parameter, int value) {
    return ZSTD_isError(ZSTD_CCtx_setParameter(context, parameter, value)) == 0;
  };
  if (is_set(ZSTD_c_literalCompressionMode, ZSTD_lcm_huffman)) {
    is_set(ZSTD_c_strategy, ZSTD_fast);
    is_set(ZSTD_c_targetLength, ZSTD_TARGETLENGTH_MAX);
    is_set(ZSTD_c_hashLog, ZSTD_HASHLOG_MIN);
  }
  return context;
}

}  // namespace

struct BlockSealer::State {
  ZSTD_CCtx* context;
  ZSTD_CCtx* noise_context;

  explicit State(int zstd_level)
      : context(new_context(zstd_level)), noise_context(new_noise_context(zstd_level)) {}
  ~State() {
    ZSTD_freeCCtx(context);
    ZSTD_freeCCtx(noise_context);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Status compress(ZSTD_CCtx* with, std::span<const uint8_t> bytes, std::span<uint8_t>* room);
};

/// Writes a frame to the front of `room` and takes that off.
Status BlockSealer::State::compress(ZSTD_CCtx* with, std::span<const uint8_t> bytes,
                                    std::span<uint8_t>* room) {
  const size_t written =
      ZSTD_compress2(with, room->data(), room->size(), bytes.data(), bytes.size());
  if (ZSTD_isError(written) != 0)
    return Error{Code::kBug, std::string("zstd: ") + ZSTD_getErrorName(written)};
  *room = room->subspan(written);
  return {};
}

BlockSealer::BlockSealer(int zstd_level) : state_(std::make_unique<State>(zstd_level)) {}
BlockSealer::~BlockSealer() = default;

Status BlockSealer::seal(BlockHeader header, std::span<const uint8_t> payload,
                         std::vector<uint8_t>* out, std::span<const PayloadPart> parts) {
  if (payload.size() > kMaxBlockBytes) {
    return Error{Code::kInvalid, "block payload of " + std::to_string(payload.size()) + " bytes"};
  }
  if (state_->context == nullptr || state_->noise_context == nullptr)
    return Error{Code::kUnavailable, "no memory for zstd"};
  const PayloadPart whole{static_cast<uint32_t>(payload.size()), false};
  if (parts.empty() || payload.size() < kLeastSplitBytes) parts = {&whole, 1};
  constexpr size_t kPrefixBytes = 8 + sizeof(BlockHeader);
  const size_t start = out->size();
  size_t bound = 0;
  for (const PayloadPart& part : parts) bound += ZSTD_compressBound(part.byte_count);
  out->resize(start + kPrefixBytes + bound);
  std::span<uint8_t> room(out->data() + start + kPrefixBytes, bound);
  std::span<const uint8_t> rest = payload;
  for (const PayloadPart& part : parts) {
    if (part.byte_count == 0 && payload.size() != 0) continue;
    ZSTD_CCtx* with = part.is_noise ? state_->noise_context : state_->context;
    if (Status status = state_->compress(with, rest.first(part.byte_count), &room); !status) {
      out->resize(start);
      return status;
    }
    rest = rest.subspan(part.byte_count);
  }
  const size_t bytes = bound - room.size();
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
  PayloadPart parts[kPayloadParts];
  const RunSummary summary = encoder_.finish(&payload_, &parts);
  header_.block_sequence = block_sequence;
  header_.first_ticks = summary.first_ticks;
  header_.last_ticks = summary.last_ticks;
  header_.record_count = summary.record_count;
  header_.counted_count = summary.counted_count;
  if (summary.record_count == 0) return header_;
  if (Status status = sealer_.seal(header_, payload_, out, parts); !status) return status.error();
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
