/// Cost of a block: encode, compress, read, decode, per record; and bytes per record on disk.
#include <benchmark/benchmark.h>

#include "core/spool/block_codec.h"
#include "core/spool/block_reader.h"
#include "core/spool/block_writer.h"
#include "tests/unit/spool/sample_records.h"
#include "tests/unit/temporary_folder.h"

namespace aon::spool {
namespace {

/// Complete steps of a stream, as many as fit in one block.
template <class Stream>
test::Bytes block_of(uint32_t seed) {
  Stream stream(seed);
  test::Bytes bytes;
  BlockEncoder encoder;
  encoder.begin(nullptr);
  for (;;) {
    test::Bytes step;
    bool refused = false;
    stream.append_step(&step);
    if (encoder.summary().record_count + 64 > kMaxBlockRecords) return bytes;
    encoder.add(step, &refused);
    bytes.insert(bytes.end(), step.begin(), step.end());
  }
}

void report(benchmark::State& state, double records, double bytes) {
  state.counters["ns_per_record"] =
      benchmark::Counter(records * 1e-9 * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  if (bytes != 0) state.counters["bytes_per_record"] = bytes / records;
}

template <class Stream>
void encode_columns(benchmark::State& state) {
  const test::Bytes records = block_of<Stream>(1);
  BlockEncoder encoder;
  test::Bytes payload;
  bool refused = false;
  RunSummary summary;
  for (auto _ : state) {
    payload.clear();
    encoder.begin(nullptr);
    encoder.add(records, &refused);
    summary = encoder.finish(&payload);
  }
  report(state, summary.record_count, static_cast<double>(payload.size()));
}

template <class Stream>
void encode_and_seal(benchmark::State& state) {
  const test::Bytes records = block_of<Stream>(1);
  RecordBlockWriter writer;
  test::Bytes block;
  bool refused = false;
  BlockHeader header{};
  for (auto _ : state) {
    block.clear();
    writer.begin(1, 1, 0, 0, nullptr);
    writer.add(records, &refused);
    if (const auto sealed = writer.seal(0, &block)) header = *sealed;
  }
  report(state, header.record_count, static_cast<double>(block.size()));
}

template <class Stream>
void decode_columns(benchmark::State& state) {
  const test::Bytes records = block_of<Stream>(1);
  BlockEncoder encoder;
  test::Bytes payload;
  bool refused = false;
  encoder.begin(nullptr);
  encoder.add(records, &refused);
  const RunSummary summary = encoder.finish(&payload);
  BlockDecoder decoder;
  std::vector<Record> batch(256);
  for (auto _ : state) {
    if (!decoder.begin(payload, summary.record_count)) state.SkipWithError("payload refused");
    for (;;) {
      const Result<size_t> got = decoder.next(batch);
      if (!got || *got == 0) break;
      benchmark::DoNotOptimize(batch.data());
      benchmark::ClobberMemory();
    }
  }
  report(state, summary.record_count, 0);
}

template <class Stream>
void read_and_decode(benchmark::State& state) {
  const aon::test::TemporaryFolder folder;
  test::Bytes file;
  test::StreamWriter writer(1, 1);
  const test::Bytes records = block_of<Stream>(1);
  double record_count = 0;
  for (uint64_t block = 0; block < 16; ++block) {
    record_count += writer.append_block(records, block, &file).record_count;
  }
  test::write_file(folder.path() / "p1.0.aon", file);
  std::vector<Record> batch(256);
  BlockDecoder decoder;
  for (auto _ : state) {
    auto reader = BlockFileReader::open((folder.path() / "p1.0.aon").string());
    BlockPosition position;
    while (reader && *reader->next(&position)) {
      const auto payload = reader->payload();
      if (!payload || !decoder.begin(*payload, position.header.record_count)) {
        state.SkipWithError("block refused");
        break;
      }
      for (auto got = decoder.next(batch); got && *got != 0; got = decoder.next(batch)) {
        benchmark::DoNotOptimize(batch.data());
      }
    }
  }
  report(state, record_count, 0);
}

BENCHMARK(encode_columns<test::BarrierStream>);
BENCHMARK(encode_columns<test::HaloStream>);
BENCHMARK(encode_columns<test::ExchangeStream>);
BENCHMARK(encode_and_seal<test::BarrierStream>);
BENCHMARK(encode_and_seal<test::HaloStream>);
BENCHMARK(encode_and_seal<test::ExchangeStream>);
BENCHMARK(decode_columns<test::BarrierStream>);
BENCHMARK(decode_columns<test::HaloStream>);
BENCHMARK(decode_columns<test::ExchangeStream>);
BENCHMARK(read_and_decode<test::BarrierStream>);
BENCHMARK(read_and_decode<test::HaloStream>);
BENCHMARK(read_and_decode<test::ExchangeStream>);

}  // namespace
}  // namespace aon::spool

BENCHMARK_MAIN();
