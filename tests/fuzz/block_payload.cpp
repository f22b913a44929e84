/// Payload of a record block: what comes out is valid, and encodes and decodes to the same again.
#include <cstring>

#include "core/spool/block_codec.h"
#include "tests/fuzz/target.h"
#include "tests/unit/spool/sample_records.h"

namespace aon::fuzz {

std::vector<Bytes> seeds() {
  std::vector<Bytes> inputs;
  for (uint32_t seed = 0; seed < 4; ++seed) {
    const Bytes records = spool::test::random_records(seed, 5 + seed * 10);
    spool::BlockEncoder encoder;
    spool::OpenStack stack;
    stack.assign({{1, 2}, {3, 4}});
    bool refused = false;
    encoder.begin(&stack);
    encoder.add(records, &refused);
    Bytes payload;
    const spool::RunSummary summary = encoder.finish(&payload);
    Bytes input = {static_cast<uint8_t>(summary.record_count),
                   static_cast<uint8_t>(summary.record_count >> 8)};
    input.insert(input.end(), payload.begin(), payload.end());
    inputs.push_back(input);
  }
  return inputs;
}

namespace {

void check_round_trip(const std::vector<Record>& records) {
  Bytes bytes;
  for (const Record& record : records) spool::test::append_record(&bytes, record);
  spool::BlockEncoder encoder;
  bool refused = false;
  encoder.begin(nullptr);
  check(encoder.add(bytes, &refused) == bytes.size() && !refused);
  Bytes payload;
  const spool::RunSummary summary = encoder.finish(&payload);
  check(summary.record_count == records.size());
  spool::BlockDecoder decoder;
  check(decoder.begin(payload, summary.record_count).has_value());
  std::vector<Record> again(records.size() + 1);
  const Result<size_t> got = decoder.next(again);
  check(got && *got == records.size());
  check(std::memcmp(again.data(), records.data(), records.size() * sizeof(Record)) == 0);
}

}  // namespace
}  // namespace aon::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  using namespace aon;
  fuzz::Input input(data, bytes);
  const auto record_count = input.take<uint16_t>();
  const fuzz::Bytes payload = input.take_bytes(bytes);
  spool::BlockDecoder decoder;
  if (!decoder.begin(payload, record_count)) return 0;
  std::vector<Record> records;
  std::vector<Record> batch(32);
  for (;;) {
    const Result<size_t> got = decoder.next(batch);
    if (!got || *got == 0) break;
    records.insert(records.end(), batch.begin(), batch.begin() + static_cast<ptrdiff_t>(*got));
  }
  fuzz::check(records.size() <= record_count);
  for (const Record& record : records) fuzz::check(is_valid(record.head));
  if (!records.empty()) fuzz::check_round_trip(records);
  return 0;
}
