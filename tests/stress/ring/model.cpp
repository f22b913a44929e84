// Writers and reader of one ring in one process, on one mapping, so that ThreadSanitizer sees both
// sides: `ring_model SECONDS`. Exit 0 when every record arrived whole, once and in order, and
// emitted = taken + refused; 1 with the number of errors otherwise.
//
// The runtime is the real one but for the handshake: open_agent_ring() below lays it over our ring.
#include <aon/writer.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "core/ring/memory.h"
#include "core/ring/reader.h"
#include "core/runtime/process.h"
#include "tests/unit/runtime/numbered.h"

namespace {

constexpr uint32_t kSlots = 8;
constexpr uint32_t kChunks = 48;
constexpr uint32_t kThreads = 3;

std::optional<aon::ring::RingMemory> g_memory;

}  // namespace

namespace aon::runtime {

bool open_agent_ring(Process& p, const char*, int, const Site*) {
  use_ring(p, g_memory->base(), g_memory->geometry());
  p.socket = -1;
  p.has_agent = true;
  return true;
}

}  // namespace aon::runtime

namespace {

using aon::Record;

/// Checks every record as it comes. In a stream the numbers of a thread rise; holes are refused
/// events, which the law at the end accounts for.
class CheckingSink : public aon::ring::Sink {
 public:
  bool take(const aon::ring::Piece& piece) override {
    copy_.assign(piece.bytes.begin(), piece.bytes.end());
    if (piece.slot == aon::kDefinitionSlot) return true;
    uint32_t counted = 0;
    for (size_t offset = 0; offset < copy_.size();) {
      Record record = {};
      std::memcpy(&record.head, &copy_[offset], aon::kSlotBytes);
      const size_t bytes = record.head.slot_count * aon::kSlotBytes;
      if (!aon::is_valid(record.head) || offset + bytes > copy_.size()) {
        ++errors;
        break;
      }
      std::memcpy(&record, &copy_[offset], bytes);
      offset += bytes;
      counted += aon::is_counted(record.head.kind);
      if (record.head.kind == aon::RecordKind::kMark) check(piece.slot, record);
    }
    if (counted != piece.counted) ++errors;
    taken += piece.counted;
    return true;
  }
  void moved(uint32_t, uint32_t, const aon::ring::StreamPosition& position) override {
    if (position.cut != aon::ring::Cut::kNone) ++errors;
  }

  uint64_t taken = 0;
  uint64_t errors = 0;

 private:
  void check(uint32_t slot, const Record& record) {
    uint64_t& next = next_[{slot, record.head.id}];
    if (!aon::test::is_whole(record) || record.head.a64 < next) ++errors;
    next = record.head.a64 + 1;
  }
  std::vector<uint8_t> copy_;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> next_;  ///< (slot, thread)
};

std::atomic<bool> g_stop{false};
std::atomic<uint64_t> g_emitted{0};

/// Threads come and go: each emits a burst, ends, and the next takes over its slot.
void write_records(uint32_t thread) {
  uint64_t number = 0;
  while (!g_stop.load(std::memory_order_relaxed)) {
    std::thread([&] {
      for (int i = 0; i < 2000; ++i) {
        aon::Writer* w = aon::attached_writer();
        if (w != nullptr) aon::test::put_numbered(w, thread, number);
        ++number;
        if (i % 400 == 0) sched_yield();
      }
    }).join();
  }
  g_emitted.fetch_add(number);
}

}  // namespace

int main(int argc, char** argv) {
  const int seconds = argc > 1 ? atoi(argv[1]) : 1;
  auto memory = aon::ring::RingMemory::create(0, kSlots, kChunks, kChunks, true);
  if (!memory) return 2;
  g_memory.emplace(std::move(*memory));
  setenv("AON_SOCKET", "in this process", 1);
  aon::attached_writer();

  aon::ring::RingReader reader(g_memory->base(), g_memory->geometry());
  CheckingSink sink;
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) threads.emplace_back(write_records, i);
  const time_t end = time(nullptr) + seconds;
  while (time(nullptr) <= end) reader.drain(sink);
  g_stop = true;
  for (std::thread& thread : threads) thread.join();
  while (!reader.drain(sink).is_complete) {
  }

  uint64_t refused = reader.refused_no_slot();
  for (uint32_t slot = 1; slot < kSlots; ++slot) {
    for (uint32_t context = 0; context < aon::kContexts; ++context) {
      refused += reader.refused(slot, context);
    }
  }
  if (sink.taken + refused != g_emitted.load()) ++sink.errors;
  printf("emitted %llu taken %llu refused %llu errors %llu\n",
         static_cast<unsigned long long>(g_emitted.load()),
         static_cast<unsigned long long>(sink.taken), static_cast<unsigned long long>(refused),
         static_cast<unsigned long long>(sink.errors));
  return sink.errors == 0 ? 0 : 1;
}
