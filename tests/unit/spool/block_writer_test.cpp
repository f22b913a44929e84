#include "core/spool/block_writer.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include <numeric>

#include "core/spool/block_reader.h"
#include "tests/unit/spool/sample_records.h"

namespace aon::spool {
namespace {

using test::Bytes;

struct Payload {
  Bytes bytes;
  PayloadPart parts[kPayloadParts];
};

Payload payload_of(int step_count) {
  test::HaloStream stream(3);
  Bytes records;
  for (int step = 0; step < step_count; ++step) stream.append_step(&records);
  BlockEncoder encoder;
  encoder.begin(nullptr);
  bool refused = false;
  EXPECT_EQ(encoder.add(records, &refused), records.size());
  Payload payload;
  encoder.finish(&payload.bytes, &payload.parts);
  return payload;
}

/// Sizes of the zstd frames of a block, its prefix left out.
std::vector<size_t> frames_of(const Bytes& block) {
  std::vector<size_t> sizes;
  for (size_t at = kBlockPrefixBytes; at < block.size(); at += sizes.back()) {
    const size_t bytes = ZSTD_findFrameCompressedSize(block.data() + at, block.size() - at);
    EXPECT_EQ(ZSTD_isError(bytes), 0u);
    if (ZSTD_isError(bytes) != 0) break;
    sizes.push_back(bytes);
  }
  return sizes;
}

Bytes decompress(const Bytes& block, size_t bytes) {
  Bytes out(bytes);
  EXPECT_EQ(ZSTD_decompress(out.data(), out.size(), block.data() + kBlockPrefixBytes,
                            block.size() - kBlockPrefixBytes),
            bytes);
  return out;
}

TEST(BlockSealer, parts_cover_the_payload) {
  for (int step_count : {0, 1, 10, 400}) {
    const Payload payload = payload_of(step_count);
    const size_t bytes =
        std::accumulate(std::begin(payload.parts), std::end(payload.parts), size_t{0},
                        [](size_t sum, const PayloadPart& part) { return sum + part.byte_count; });
    EXPECT_EQ(bytes, payload.bytes.size());
  }
}

TEST(BlockSealer, a_large_payload_is_a_frame_for_each_part_and_smaller_so) {
  const Payload payload = payload_of(400);
  BlockSealer sealer;
  Bytes whole;
  ASSERT_TRUE(sealer.seal(BlockHeader{}, payload.bytes, &whole));
  Bytes split;
  ASSERT_TRUE(sealer.seal(BlockHeader{}, payload.bytes, &split, payload.parts));
  EXPECT_EQ(frames_of(whole).size(), 1u);
  EXPECT_EQ(frames_of(split).size(), kPayloadParts);
  EXPECT_EQ(decompress(whole, payload.bytes.size()), payload.bytes);
  EXPECT_EQ(decompress(split, payload.bytes.size()), payload.bytes);
  EXPECT_LT(split.size() * 10, whole.size() * 9);
}

TEST(BlockSealer, a_small_payload_is_one_frame) {
  const Payload payload = payload_of(10);
  BlockSealer sealer;
  Bytes block;
  ASSERT_TRUE(sealer.seal(BlockHeader{}, payload.bytes, &block, payload.parts));
  EXPECT_EQ(frames_of(block).size(), 1u);
  EXPECT_EQ(decompress(block, payload.bytes.size()), payload.bytes);
}

}  // namespace
}  // namespace aon::spool
