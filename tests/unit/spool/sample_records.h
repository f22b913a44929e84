/// Records for tests and benchmarks of the spool: streams of the shape that MPI programs leave, and
/// a spool folder to write them into. Seeded, so that every run sees the same bytes.
#pragma once

#include <aon/record.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/spool/block_writer.h"
#include "core/spool/files.h"

namespace aon::spool::test {

using Bytes = std::vector<uint8_t>;

inline void append_record(Bytes* bytes, const Record& record) {
  const auto* from = reinterpret_cast<const uint8_t*>(&record);
  bytes->insert(bytes->end(), from, from + size_t{record.head.slot_count} * kSlotBytes);
}

inline Record make_record(RecordKind kind, uint8_t slot_count, uint32_t id, uint64_t start_ticks,
                          uint32_t duration_ticks) {
  Record record{};
  record.head.kind = kind;
  record.head.slot_count = slot_count;
  record.head.id = id;
  record.head.start_ticks = start_ticks;
  record.head.duration_ticks = duration_ticks;
  return record;
}

/// A rank of a halo exchange: receives and sends to four neighbours, their completions inside a
/// Waitall, every tenth step an Allreduce. Times are multiples of the TSC's grain, with noise.
class HaloStream {
 public:
  explicit HaloStream(uint32_t seed) : random_(seed) {}

  /// One step of 17 or 18 records.
  void append_step(Bytes* bytes) {
    const uint64_t first_request = request_ + 1;
    for (int neighbour = 0; neighbour < 4; ++neighbour)
      append_message(bytes, 11, neighbour, kIncoming);
    for (int neighbour = 0; neighbour < 4; ++neighbour)
      append_message(bytes, 12, neighbour, kOutgoing);
    const uint64_t wait_start = advance(900);
    for (int i = 0; i < 8; ++i) {
      Record done = make_record(RecordKind::kCompletion, 2, 0, advance(2600), 0);
      done.head.flags = static_cast<uint16_t>(kInsideSpan | (i < 4 ? kIncoming : kOutgoing));
      done.head.a64 = message_bytes(i % 4);
      done.words[0] = peer_tag(i % 4);
      done.words[1] = first_request + static_cast<uint64_t>(i);
      append_record(bytes, done);
    }
    Record wait = make_record(RecordKind::kSpan, 1, 13, wait_start, 0);
    wait.head.duration_ticks = static_cast<uint32_t>(advance(300) - wait_start);
    append_record(bytes, wait);
    if (++step_ % 10 == 0) append_allreduce(bytes);
    now_ += 200'000;
  }

 private:
  uint64_t advance(uint32_t mean_ticks) {
    std::exponential_distribution<double> noise(1.0 / mean_ticks);
    now_ += 26 + 26 * (static_cast<uint64_t>(mean_ticks / 2 + noise(random_) / 2) / 26);
    return now_;
  }
  static uint64_t message_bytes(int neighbour) { return neighbour < 2 ? 8192 : 4096; }
  static uint64_t peer_tag(int neighbour) { return pack_pair(neighbour * 3 + 1, 100 + neighbour); }

  void append_message(Bytes* bytes, uint32_t region, int neighbour, RecordFlags direction) {
    Record record = make_record(RecordKind::kMessage, 2, region, advance(400), 0);
    record.head.flags = static_cast<uint16_t>(kNonblocking | direction);
    record.head.a64 = message_bytes(neighbour);
    record.words[0] = peer_tag(neighbour);
    record.words[1] = ++request_;
    record.head.duration_ticks = static_cast<uint32_t>(advance(700) - record.head.start_ticks);
    append_record(bytes, record);
  }
  void append_allreduce(Bytes* bytes) {
    Record record = make_record(RecordKind::kCollective, 2, 14, advance(2000), 0);
    record.head.a64 = 8;
    record.words[0] = 8;
    record.words[1] = pack_pair(-1, static_cast<int32_t>(CollectiveOperation::kAllreduce));
    record.head.duration_ticks = static_cast<uint32_t>(advance(20000) - record.head.start_ticks);
    append_record(bytes, record);
  }

  std::mt19937_64 random_;
  uint64_t now_ = 1'000'000'000'000;
  uint64_t request_ = 0;
  uint64_t step_ = 0;
};

/// A stream like LAMMPS on two ranks: per step six blocking Sendrecv-like Send, Irecv and Wait
/// triples with sizes that change every twenty steps.
class ExchangeStream {
 public:
  explicit ExchangeStream(uint32_t seed) : random_(seed) {}

  void append_step(Bytes* bytes) {
    if (step_++ % 20 == 0) {
      for (uint64_t& size : sizes_) size = 24 * (900 + random_() % 200);
    }
    for (int swap = 0; swap < 6; ++swap) append_swap(bytes, swap);
    now_ += 500'000;
  }

 private:
  uint64_t advance(uint32_t mean_ticks) {
    std::exponential_distribution<double> noise(1.0 / mean_ticks);
    now_ += 26 + 26 * (static_cast<uint64_t>(mean_ticks / 2 + noise(random_) / 2) / 26);
    return now_;
  }
  void append_swap(Bytes* bytes, int swap) {
    Record receive = make_record(RecordKind::kMessage, 2, 11, advance(3000), 0);
    receive.head.flags = kNonblocking | kIncoming;
    receive.head.a64 = sizes_[swap];
    receive.words[0] = pack_pair(1, 0);
    receive.words[1] = ++request_;
    receive.head.duration_ticks = static_cast<uint32_t>(advance(600) - receive.head.start_ticks);
    append_record(bytes, receive);
    Record send = make_record(RecordKind::kMessage, 2, 15, advance(100), 0);
    send.head.flags = kOutgoing;
    send.head.a64 = sizes_[swap] - 24;
    send.words[0] = pack_pair(1, 0);
    send.head.duration_ticks = static_cast<uint32_t>(advance(5000) - send.head.start_ticks);
    append_record(bytes, send);
    const uint64_t wait_start = advance(100);
    Record done = make_record(RecordKind::kCompletion, 2, 0, advance(4000), 0);
    done.head.flags = kInsideSpan | kIncoming;
    done.head.a64 = sizes_[swap] - 24;
    done.words[0] = pack_pair(1, 0);
    done.words[1] = request_;
    append_record(bytes, done);
    Record wait = make_record(RecordKind::kSpan, 1, 16, wait_start, 0);
    wait.head.duration_ticks = static_cast<uint32_t>(advance(100) - wait_start);
    append_record(bytes, wait);
  }

  std::mt19937_64 random_;
  uint64_t now_ = 5'000'000'000'000;
  uint64_t request_ = 0;
  uint64_t step_ = 0;
  uint64_t sizes_[6] = {};
};

/// A loop of barriers alone, as of two ranks that share memory: the clock goes on in steps of some
/// 24.45 ticks, of which there lie one to five between two calls and 13 to 30 within one.
class BarrierStream {
 public:
  explicit BarrierStream(uint32_t seed) : random_(seed) {}

  /// One record.
  void append_step(Bytes* bytes) {
    const uint64_t start = advance(1 + (random_() % 4 == 0 ? 1 + random_() % 4 : 0));
    Record record = make_record(RecordKind::kCollective, 2, 14, start, 0);
    const uint64_t steps = 13 + random_() % 6 + random_() % 6 + random_() % 8;
    record.head.duration_ticks = static_cast<uint32_t>(advance(steps) - start);
    record.words[1] = pack_pair(-1, static_cast<int32_t>(CollectiveOperation::kBarrier));
    append_record(bytes, record);
  }

 private:
  uint64_t advance(uint64_t steps) {
    hundredths_ += steps * 2445;
    return hundredths_ / 100;
  }

  std::mt19937_64 random_;
  uint64_t hundredths_ = 100'000'000'000'000;
};

/// Records of every kind and size with fields of any value, in order of end time.
inline Bytes random_records(uint32_t seed, size_t count) {
  std::mt19937_64 random(seed);
  Bytes bytes;
  uint64_t end_ticks = 1'000'000;
  for (size_t i = 0; i < count; ++i) {
    const auto kind = static_cast<RecordKind>(1 + random() % (kRecordKindCount - 1));
    const auto slots = static_cast<uint8_t>(1 + random() % kMaxSlots);
    const uint64_t duration = random() >> (random() % 64);
    end_ticks += random() % 5000;
    Record record = make_record(kind, slots, static_cast<uint32_t>(random() % 40), 0,
                                static_cast<uint32_t>(duration));
    record.head.flags = static_cast<uint16_t>(random() & 0x1fe);
    if (random() % 4 == 0) record.head.a32 = static_cast<uint32_t>(random() >> (random() % 64));
    if (random() % 4 == 0) record.head.a64 = random() >> (random() % 64);
    for (uint32_t w = 0; w < (slots - 1u) * 4; ++w) record.words[w] = random() >> (random() % 64);
    if (slots > 1 && random() % 3 == 0) {
      record.head.flags |= kWideDuration;
      record.words[(slots - 1u) * 4 - 1] = duration;
    }
    record.head.start_ticks = end_ticks - duration_ticks(record);
    append_record(&bytes, record);
  }
  return bytes;
}

/// The records in `bytes`, with words that are not there zero.
inline std::vector<Record> records_of(const Bytes& bytes) {
  std::vector<Record> records;
  for (size_t at = 0; at < bytes.size();) {
    Record record{};
    std::memcpy(&record, bytes.data() + at, kSlotBytes);
    const size_t record_bytes = size_t{record.head.slot_count} * kSlotBytes;
    std::memcpy(&record, bytes.data() + at, record_bytes);
    records.push_back(record);
    at += record_bytes;
  }
  return records;
}

inline void write_file(const std::filesystem::path& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}
inline Bytes read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

/// Writes blocks of one stream one after the other, as the agent does.
class StreamWriter {
 public:
  StreamWriter(uint32_t process, uint16_t slot, uint16_t context = 0)
      : process_(process), slot_(slot), context_(context) {}

  /// Seals `records` as one block behind `file`.
  BlockHeader append_block(const Bytes& records, uint64_t block_sequence, Bytes* file) {
    bool refused = false;
    writer_.begin(process_, slot_, context_, sequence_, &stack_);
    const size_t taken = writer_.add(records, &refused);
    if (refused || taken != records.size()) throw std::runtime_error("records were not taken");
    const Result<BlockHeader> header = writer_.seal(block_sequence, file);
    if (!header) throw std::runtime_error(header.error().message);
    sequence_ += header->counted_count;
    return *header;
  }
  uint64_t sequence() const { return sequence_; }
  void skip(uint64_t counted_count) { sequence_ += counted_count; }

 private:
  RecordBlockWriter writer_;
  OpenStack stack_;
  uint32_t process_;
  uint16_t slot_;
  uint16_t context_;
  uint64_t sequence_ = 0;
};

}  // namespace aon::spool::test
