#include "core/spool/block_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "tests/unit/spool/sample_records.h"

namespace aon::spool {
namespace {

using test::Bytes;

struct Encoded {
  Bytes payload;
  RunSummary summary;
  size_t taken;
  bool refused;
};

Encoded encode(BlockEncoder* encoder, std::span<const uint8_t> records,
               OpenStack* stack = nullptr) {
  Encoded encoded;
  encoder->begin(stack);
  encoded.taken = encoder->add(records, &encoded.refused);
  encoded.summary = encoder->finish(&encoded.payload);
  return encoded;
}

std::vector<Record> decode(const Encoded& encoded, size_t batch_records = 100) {
  BlockDecoder decoder;
  const Status status = decoder.begin(encoded.payload, encoded.summary.record_count);
  EXPECT_TRUE(status.has_value()) << status.error().message;
  std::vector<Record> records;
  std::vector<Record> batch(batch_records);
  for (;;) {
    const Result<size_t> got = decoder.next(batch);
    if (!got) ADD_FAILURE() << got.error().message;
    if (!got || *got == 0) return records;
    records.insert(records.end(), batch.begin(), batch.begin() + static_cast<ptrdiff_t>(*got));
  }
}

void expect_equal(const std::vector<Record>& got, const std::vector<Record>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(std::memcmp(&got[i], &expected[i], sizeof(Record)), 0) << "record " << i;
  }
}

TEST(BlockCodec, counts_records_of_each_kind_and_id) {
  const Bytes bytes = test::random_records(3, 2000);
  std::map<std::pair<RecordKind, uint32_t>, uint32_t> expected;
  for (const Record& record : test::records_of(bytes)) {
    ++expected[{record.head.kind, record.head.id}];
  }
  BlockEncoder encoder;
  encoder.begin(nullptr);
  bool refused = false;
  ASSERT_EQ(encoder.add(bytes, &refused), bytes.size());
  std::map<std::pair<RecordKind, uint32_t>, uint32_t> got;
  encoder.visit_shapes([&](const ShapeCount& s) { got[{s.kind, s.id}] += s.record_count; });
  EXPECT_EQ(got, expected);
}

TEST(BlockCodec, returns_every_record_as_it_was) {
  BlockEncoder encoder;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Bytes bytes = test::random_records(seed, 1 + seed * 100);
    const Encoded encoded = encode(&encoder, bytes);
    ASSERT_EQ(encoded.taken, bytes.size());
    expect_equal(decode(encoded, 1 + seed * 7), test::records_of(bytes));
  }
}

TEST(BlockCodec, returns_the_records_of_a_halo_exchange) {
  BlockEncoder encoder;
  test::HaloStream stream(1);
  for (int block = 0; block < 3; ++block) {
    Bytes bytes;
    for (int step = 0; step < 300; ++step) stream.append_step(&bytes);
    const Encoded encoded = encode(&encoder, bytes);
    expect_equal(decode(encoded), test::records_of(bytes));
    EXPECT_LT(encoded.payload.size(), 10 * encoded.summary.record_count);
  }
}

TEST(BlockCodec, keeps_extreme_times_and_fields) {
  Bytes bytes;
  Record first = test::make_record(RecordKind::kSpan, 1, UINT32_MAX, UINT64_MAX - 10, UINT32_MAX);
  first.head.a32 = UINT32_MAX;
  first.head.a64 = UINT64_MAX;
  test::append_record(&bytes, first);
  test::append_record(&bytes, test::make_record(RecordKind::kSpan, 1, UINT32_MAX, 0, 0));
  Record wide = test::make_record(RecordKind::kExchange, 4, 0, 77, 5);
  wide.head.flags = kWideDuration;
  for (uint32_t w = 0; w < kMaxWords; ++w) wide.words[w] = w % 2 == 0 ? UINT64_MAX : 1ull << 63;
  test::append_record(&bytes, wide);
  BlockEncoder encoder;
  expect_equal(decode(encode(&encoder, bytes)), test::records_of(bytes));
}

TEST(BlockCodec, summary_counts_events_and_spans_their_time) {
  Bytes bytes;
  test::append_record(&bytes, test::make_record(RecordKind::kCompletion, 1, 0, 500, 0));
  test::append_record(&bytes, test::make_record(RecordKind::kSpan, 1, 3, 100, 900));
  test::append_record(&bytes, test::make_record(RecordKind::kThread, 1, 42, 1000, 0));
  BlockEncoder encoder;
  const Encoded encoded = encode(&encoder, bytes);
  EXPECT_EQ(encoded.summary.record_count, 3u);
  EXPECT_EQ(encoded.summary.counted_count, 2u);
  EXPECT_EQ(encoded.summary.first_ticks, 100u);
  EXPECT_EQ(encoded.summary.last_ticks, 1000u);
}

TEST(BlockCodec, summary_knows_wide_durations) {
  Bytes bytes;
  Record wide = test::make_record(RecordKind::kSpan, 2, 1, 100, 0);
  wide.head.flags = kWideDuration;
  wide.words[3] = 1ull << 40;
  test::append_record(&bytes, wide);
  BlockEncoder encoder;
  EXPECT_EQ(encode(&encoder, bytes).summary.last_ticks, 100 + (1ull << 40));
}

TEST(BlockCodec, stops_at_a_full_block_and_goes_on_in_the_next) {
  const Bytes bytes = test::random_records(5, kMaxBlockRecords + 10);
  BlockEncoder encoder;
  bool refused = false;
  encoder.begin(nullptr);
  const size_t taken = encoder.add(bytes, &refused);
  EXPECT_TRUE(encoder.is_full());
  EXPECT_FALSE(refused);
  Bytes payload;
  EXPECT_EQ(encoder.finish(&payload).record_count, kMaxBlockRecords);
  const Encoded rest = encode(&encoder, std::span(bytes).subspan(taken));
  EXPECT_EQ(rest.summary.record_count, 10u);
}

TEST(BlockCodec, block_of_largest_records_fits) {
  Bytes bytes;
  std::mt19937_64 random(9);
  for (uint32_t i = 0; i < kMaxBlockRecords; ++i) {
    Record record = test::make_record(RecordKind::kDefinition, 4, static_cast<uint32_t>(random()),
                                      random(), static_cast<uint32_t>(random()));
    record.head.a32 = static_cast<uint32_t>(random());
    record.head.a64 = random();
    for (uint64_t& word : record.words) word = random();
    test::append_record(&bytes, record);
  }
  BlockEncoder encoder;
  const Encoded encoded = encode(&encoder, bytes);
  EXPECT_EQ(encoded.summary.record_count, kMaxBlockRecords);
  EXPECT_LE(encoded.payload.size(), kMaxBlockBytes);
  expect_equal(decode(encoded), test::records_of(bytes));
}

TEST(BlockCodec, takes_no_record_that_is_cut_off_or_invalid) {
  Bytes bytes = test::random_records(6, 20);
  const std::vector<Record> records = test::records_of(bytes);
  BlockEncoder encoder;
  const size_t last_bytes = size_t{records.back().head.slot_count} * kSlotBytes;
  const Encoded cut = encode(&encoder, std::span(bytes).first(bytes.size() - 8));
  EXPECT_EQ(cut.taken, bytes.size() - last_bytes);
  EXPECT_FALSE(cut.refused);
  bytes[bytes.size() - last_bytes + offsetof(RecordHead, slot_count)] = 9;
  const Encoded invalid = encode(&encoder, bytes);
  EXPECT_EQ(invalid.taken, bytes.size() - last_bytes);
  EXPECT_TRUE(invalid.refused);
}

TEST(BlockCodec, blocks_begin_with_the_regions_that_are_open) {
  OpenStack stack;
  BlockEncoder encoder;
  Bytes bytes;
  test::append_record(&bytes, test::make_record(RecordKind::kBegin, 1, 7, 100, 0));
  test::append_record(&bytes, test::make_record(RecordKind::kBegin, 1, 8, 200, 0));
  const Encoded first = encode(&encoder, bytes, &stack);
  bytes.clear();
  test::append_record(&bytes, test::make_record(RecordKind::kEnd, 1, 8, 300, 0));
  const Encoded second = encode(&encoder, bytes, &stack);
  BlockDecoder decoder;
  ASSERT_TRUE(decoder.begin(first.payload, 2).has_value());
  EXPECT_TRUE(decoder.open_regions().empty());
  ASSERT_TRUE(decoder.begin(second.payload, 1).has_value());
  ASSERT_EQ(decoder.open_regions().size(), 2u);
  EXPECT_EQ(decoder.open_regions()[1].region, 8u);
  EXPECT_EQ(decoder.open_regions()[1].start_ticks, 200u);
  ASSERT_EQ(stack.regions().size(), 1u);
}

TEST(BlockCodec, open_regions_follow_what_happened_in_a_hole) {
  OpenStack stack;
  BlockEncoder encoder;
  Bytes bytes;
  Record lost = test::make_record(RecordKind::kLost, 1, 0, 300, 0);
  test::append_record(&bytes, test::make_record(RecordKind::kBegin, 1, 7, 100, 0));
  test::append_record(&bytes, test::make_record(RecordKind::kBegin, 1, 8, 200, 0));
  lost.head.a32 = pack_lost_regions(1, 2);
  test::append_record(&bytes, lost);
  test::append_record(&bytes, test::make_record(RecordKind::kEnd, 1, 7, 400, 0));
  encode(&encoder, bytes, &stack);
  ASSERT_EQ(stack.regions().size(), 2u);
  EXPECT_EQ(stack.regions()[0].region, 7u) << "that was the end of one that began in the hole";
  EXPECT_EQ(stack.regions()[1].region, kUnseenRegion);
  EXPECT_EQ(stack.regions()[1].start_ticks, 1u);
  bytes.clear();
  lost.head.a32 = pack_lost_regions(kAllRegions, 0);
  test::append_record(&bytes, lost);
  encode(&encoder, bytes, &stack);
  EXPECT_TRUE(stack.regions().empty());
}

TEST(BlockCodec, damaged_payloads_are_refused_and_never_yield_invalid_records) {
  BlockEncoder encoder;
  const Encoded good = encode(&encoder, test::random_records(11, 300));
  std::mt19937 random(12);
  BlockDecoder decoder;
  std::vector<Record> batch(64);
  for (int round = 0; round < 3000; ++round) {
    Bytes payload = good.payload;
    for (int flips = 1 + round % 4; flips > 0; --flips) {
      payload[random() % payload.size()] = static_cast<uint8_t>(random());
    }
    if (round % 3 == 0) payload.resize(random() % payload.size());
    if (!decoder.begin(payload, good.summary.record_count)) continue;
    for (;;) {
      const Result<size_t> got = decoder.next(batch);
      if (!got || *got == 0) break;
      for (size_t i = 0; i < *got; ++i) ASSERT_TRUE(is_valid(batch[i].head));
    }
  }
}

TEST(OpenStack, survives_lost_begins_and_ends) {
  OpenStack stack;
  const auto begin = [](uint32_t id) {
    return test::make_record(RecordKind::kBegin, 1, id, id, 0).head;
  };
  const auto end = [](uint32_t id) {
    return test::make_record(RecordKind::kEnd, 1, id, id, 0).head;
  };
  stack.follow(end(1));
  stack.follow(begin(2));
  stack.follow(begin(3));
  stack.follow(begin(4));
  stack.follow(end(9));
  EXPECT_EQ(stack.regions().size(), 3u);
  stack.follow(end(3));
  ASSERT_EQ(stack.regions().size(), 1u);
  EXPECT_EQ(stack.regions()[0].region, 2u);
}

}  // namespace
}  // namespace aon::spool
