/// Hostile blocks that are whole (right CRC and frame) in the segments of a process: index, merge
/// and gap accounting end, stay bounded, and what comes out is valid.
///
///     input:  {u8 segment, u8 context and flags, u64 first_sequence, u32 record_count,
///              u32 counted_count, u64 first_ticks, u16 bytes, payload}...
#include <algorithm>

#include "core/spool/stream_reader.h"
#include "tests/fuzz/target.h"
#include "tests/unit/spool/sample_records.h"
#include "tests/unit/temporary_folder.h"

namespace aon::fuzz {
namespace {

constexpr uint32_t kProcess = 1;
constexpr uint16_t kSlot = 3;
constexpr uint32_t kSegments = 4;

template <class T>
void put(Bytes* bytes, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) bytes->push_back(static_cast<uint8_t>(value >> (8 * i)));
}

void put_block(Bytes* input, uint8_t segment, uint8_t context, uint64_t first_sequence,
               const Bytes& records) {
  spool::BlockEncoder encoder;
  bool refused = false;
  encoder.begin(nullptr);
  encoder.add(records, &refused);
  Bytes payload;
  const spool::RunSummary summary = encoder.finish(&payload);
  put(input, segment);
  put(input, context);
  put(input, first_sequence);
  put(input, summary.record_count);
  put(input, summary.counted_count);
  put(input, summary.first_ticks);
  put(input, static_cast<uint16_t>(payload.size()));
  input->insert(input->end(), payload.begin(), payload.end());
}

}  // namespace

std::vector<Bytes> seeds() {
  Bytes input;
  put_block(&input, 0, 0, 0, spool::test::random_records(1, 20));
  put_block(&input, 1, 1, 5, spool::test::random_records(2, 6));
  put_block(&input, 1, 0, 40, spool::test::random_records(3, 9));
  return {input};
}

}  // namespace aon::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  using namespace aon;
  static const aon::test::TemporaryFolder folder;
  static spool::BlockSealer sealer;
  fuzz::Bytes files[fuzz::kSegments];
  fuzz::Input input(data, bytes);
  uint64_t record_limit = 0;
  while (!input.is_empty()) {
    const uint32_t segment = input.take<uint8_t>() % fuzz::kSegments;
    spool::BlockHeader header{};
    header.kind = spool::BlockKind::kRecords;
    header.process = fuzz::kProcess;
    header.slot = fuzz::kSlot;
    header.context = input.take<uint8_t>();
    header.first_sequence = input.take<uint64_t>();
    header.record_count = input.take<uint32_t>();
    header.counted_count = input.take<uint32_t>();
    header.first_ticks = input.take<uint64_t>();
    const fuzz::Bytes payload = input.take_bytes(input.take<uint16_t>());
    fuzz::check(sealer.seal(header, payload, &files[segment]).has_value());
    record_limit += std::min(header.record_count, spool::kMaxBlockRecords);
  }
  std::vector<spool::SegmentName> names;
  for (uint32_t segment = 0; segment < fuzz::kSegments; ++segment) {
    names.push_back({fuzz::kProcess, std::nullopt, segment});
    spool::test::write_file(folder.path() / spool::segment_file_name(names.back()), files[segment]);
  }
  const auto index = spool::ProcessIndex::build(folder.path(), fuzz::kProcess, names);
  fuzz::check(index.has_value());
  spool::Process process{};
  process.losses.push_back({fuzz::kProcess, fuzz::kSlot, 0, 1, 0, 3, 9, 100, 200});
  process.streams[{fuzz::kSlot, 0}].committed = 100;
  spool::StreamReader reader(*index, &process, fuzz::kSlot);
  uint64_t record_count = 0;
  uint64_t lost_count = 0;
  for (auto batch = reader.next(); batch && !batch->records.empty(); batch = reader.next()) {
    for (const Record& record : batch->records) {
      fuzz::check(is_valid(record.head));
      ++(record.head.kind == RecordKind::kLost ? lost_count : record_count);
    }
  }
  fuzz::check(record_count <= record_limit);
  fuzz::check(lost_count <= 4 * (record_limit + 100));
  return 0;
}
