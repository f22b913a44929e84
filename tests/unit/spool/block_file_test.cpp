#include "core/spool/block_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/spool/crc32c.h"
#include "tests/unit/spool/sample_records.h"
#include "tests/unit/temporary_folder.h"

namespace aon::spool {
namespace {

using test::Bytes;

constexpr uint32_t kBlocks = 12;

/// A file of kBlocks blocks, and what a reader makes of it after somebody damaged it.
class BlockFile : public testing::Test {
 protected:
  struct Read {
    std::vector<uint64_t> blocks;  ///< block_sequence of those whose payload decoded
    uint64_t damaged_blocks = 0;
  };

  void SetUp() override {
    test::HaloStream stream(3);
    test::StreamWriter writer(1, 1);
    for (uint32_t block = 0; block < kBlocks; ++block) {
      Bytes records;
      for (int step = 0; step < 200; ++step) stream.append_step(&records);
      offsets_.push_back(file_.size());
      writer.append_block(records, block, &file_);
    }
    path_ = folder_.path() / "p1.0.aon";
  }

  Read read() {
    test::write_file(path_, file_);
    Result<BlockFileReader> reader = BlockFileReader::open(path_.string());
    EXPECT_TRUE(reader.has_value());
    Read result;
    BlockPosition position;
    BlockDecoder decoder;
    std::vector<Record> batch(kMaxBlockRecords);
    for (;;) {
      const Result<bool> more = reader->next(&position);
      EXPECT_TRUE(more.has_value());
      if (!more || !*more) break;
      const auto payload = reader->payload();
      if (!payload) continue;
      EXPECT_TRUE(decoder.begin(*payload, position.header.record_count).has_value());
      const Result<size_t> got = decoder.next(batch);
      EXPECT_TRUE(got && *got == position.header.record_count);
      result.blocks.push_back(position.header.block_sequence);
    }
    result.damaged_blocks = reader->scan().damaged_blocks;
    return result;
  }

  bool zstd_accepts() {
    test::write_file(path_, file_);
    const std::string command = "zstd -q -t < '" + path_.string() + "' 2>/dev/null";
    return std::system(command.c_str()) == 0;
  }

  aon::test::TemporaryFolder folder_;
  std::filesystem::path path_;
  Bytes file_;
  std::vector<size_t> offsets_;
};

TEST_F(BlockFile, intact_gives_every_block) {
  const Read all = read();
  EXPECT_EQ(all.blocks.size(), kBlocks);
  EXPECT_EQ(all.damaged_blocks, 0u);
}

TEST_F(BlockFile, is_a_legal_zstd_stream) {
  if (std::system("zstd --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no zstd program";
  EXPECT_TRUE(zstd_accepts());
  file_[offsets_[5] + kBlockPrefixBytes + 40] ^= 0x10;
  EXPECT_FALSE(zstd_accepts());
}

TEST_F(BlockFile, truncated_loses_the_cut_block_only) {
  file_.resize(offsets_[8] + kBlockPrefixBytes + 100);
  const Read rest = read();
  EXPECT_EQ(rest.blocks.size(), 8u);
  EXPECT_EQ(rest.damaged_blocks, 1u);
  const Result<ScanResult> scan = scan_headers(path_.string());
  ASSERT_TRUE(scan.has_value());
  EXPECT_EQ(scan->valid_bytes, offsets_[8]);
  EXPECT_EQ(scan->damaged_blocks, 1u);
}

TEST_F(BlockFile, truncated_inside_a_header_is_one_damaged_block) {
  file_.resize(offsets_[8] + 50);
  const Read rest = read();
  EXPECT_EQ(rest.blocks.size(), 8u);
  EXPECT_EQ(rest.damaged_blocks, 1u);
}

TEST_F(BlockFile, every_flipped_bit_costs_at_most_its_block) {
  const Bytes intact = file_;
  std::mt19937 random(4);
  for (int round = 0; round < 200; ++round) {
    file_ = intact;
    const size_t at = random() % file_.size();
    file_[at] ^= static_cast<uint8_t>(1u << (random() % 8));
    const Read rest = read();
    // A bit of a zstd header that means nothing may stay unseen.
    ASSERT_GE(rest.blocks.size(), kBlocks - 1u) << "byte " << at;
    ASSERT_EQ(rest.damaged_blocks, kBlocks - rest.blocks.size()) << "byte " << at;
  }
}

TEST_F(BlockFile, hole_of_a_page_loses_the_blocks_it_touches) {
  for (size_t start = 0; start + 4096 < file_.size(); start += 3001) {
    const Bytes intact = file_;
    uint32_t touched = 0;
    for (uint32_t i = 0; i < kBlocks; ++i) {
      const size_t end = i + 1 < kBlocks ? offsets_[i + 1] : file_.size();
      touched += offsets_[i] < start + 4096 && end > start ? 1 : 0;
    }
    std::fill_n(file_.begin() + static_cast<ptrdiff_t>(start), 4096, uint8_t{0});
    const Read rest = read();
    EXPECT_EQ(rest.blocks.size(), kBlocks - touched) << "at " << start;
    EXPECT_EQ(rest.damaged_blocks, touched) << "at " << start;
    file_ = intact;
  }
}

TEST_F(BlockFile, block_cut_off_and_written_over_is_found) {
  const Bytes tail(file_.begin() + static_cast<ptrdiff_t>(offsets_[6]), file_.end());
  file_.resize(offsets_[5] + kBlockPrefixBytes + 10);
  file_.insert(file_.end(), tail.begin(), tail.end());
  const Read rest = read();
  EXPECT_EQ(rest.blocks.size(), kBlocks - 1u);
  EXPECT_EQ(rest.damaged_blocks, 1u);
}

TEST_F(BlockFile, garbage_and_nothing_are_no_blocks) {
  file_.assign(100'000, 0x5a);
  EXPECT_EQ(read().blocks.size(), 0u);
  EXPECT_EQ(read().damaged_blocks, 1u);
  file_.clear();
  EXPECT_EQ(read().damaged_blocks, 0u);
}

TEST_F(BlockFile, headers_that_ask_for_too_much_are_damage) {
  BlockHeader header;
  ASSERT_TRUE(parse_block_prefix(file_, &header));
  header.raw_bytes = kMaxBlockBytes + 1;
  header.crc32c = crc32c(&header, offsetof(BlockHeader, crc32c));
  std::memcpy(file_.data() + 8, &header, sizeof(header));
  EXPECT_FALSE(parse_block_prefix(file_, &header));
}

TEST_F(BlockFile, missing_file_is_not_found) {
  const auto reader = BlockFileReader::open((folder_.path() / "none").string());
  ASSERT_FALSE(reader.has_value());
  EXPECT_EQ(reader.error().code, Code::kNotFound);
}

TEST(Crc32c, gives_the_values_of_rfc_3720) {
  const Bytes zeros(32, 0);
  EXPECT_EQ(crc32c(zeros.data(), zeros.size()), 0x8a9136aau);
  EXPECT_EQ(crc32c("123456789", 9), 0xe3069283u);
}

TEST(Crc32c, table_and_instruction_agree) {
  std::mt19937 random(1);
  Bytes bytes(1000);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  for (size_t length = 0; length < bytes.size(); length += 7) {
    ASSERT_EQ(crc32c(bytes.data(), length), crc32c_by_table(bytes.data(), length));
  }
}

TEST(SegmentName, is_written_and_read_alike) {
  for (const SegmentName& name : {SegmentName{3, std::nullopt, 0}, SegmentName{12, uint16_t{7}, 41},
                                  SegmentName{kNodeProcess, std::nullopt, 2}}) {
    const auto parsed = parse_segment_file_name(segment_file_name(name));
    ASSERT_TRUE(parsed.has_value());
    EXPECT_EQ(*parsed, name);
  }
  EXPECT_EQ(segment_file_name({3, uint16_t{2}, 1}), "p3.t2.1.aon");
  for (const char* bad : {"", "p.0.aon", "p1.aon", "p1.0.aonx", "p01.0.aon", "p1.t70000.0.aon",
                          "definitions.aon", "p1.t2.aon", "p99999999999.0.aon"}) {
    EXPECT_FALSE(parse_segment_file_name(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace aon::spool
