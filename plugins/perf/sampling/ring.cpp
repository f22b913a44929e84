#include "perf/sampling/ring.h"

#include <algorithm>
#include <cstring>

namespace aon::perf {
namespace {

/// Takes values off the front of a record's body.
class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : rest_(bytes) {}

  template <class T>
  T take() {
    T value{};
    if (rest_.size() < sizeof(T)) {
      is_short_ = true;
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_ = rest_.subspan(sizeof(T));
    return value;
  }
  std::span<const uint8_t> take_bytes(size_t count) {
    const std::span<const uint8_t> bytes = rest_.first(count);
    rest_ = rest_.subspan(count);
    return bytes;
  }
  bool is_short() const { return is_short_; }
  std::span<const uint8_t> rest() const { return rest_; }

 private:
  std::span<const uint8_t> rest_;
  bool is_short_ = false;
};

/// Numbers that say which part of the chain follows, not addresses.
bool is_context(uint64_t address) { return address >= static_cast<uint64_t>(PERF_CONTEXT_MAX); }

void take_chain(Reader* reader, RawSample* sample) {
  const uint64_t count = reader->take<uint64_t>();
  for (uint64_t i = 0; i < count && !reader->is_short(); ++i) {
    const auto address = reader->take<uint64_t>();
    if (is_context(address) || reader->is_short()) continue;
    if (sample->frames.size() < kMaxFrames) sample->frames.push_back(address);
  }
}

/// Each entry is a call that has not returned: `from` lies in the caller.
void take_branches(Reader* reader, RawSample* sample) {
  const uint64_t count = reader->take<uint64_t>();
  for (uint64_t i = 0; i < count && !reader->is_short(); ++i) {
    const auto entry = reader->take<perf_branch_entry>();
    if (reader->is_short() || entry.from == 0) continue;
    // The address of the call; one more makes it look like a return address.
    if (sample->frames.size() < kMaxFrames) sample->frames.push_back(entry.from + 1);
  }
}

/// Registers are there when the thread was in user code; the copy has its own length behind it.
void take_stack(Reader* reader, RawSample* sample) {
  constexpr uint64_t kNoRegisters = 0;  // PERF_SAMPLE_REGS_ABI_NONE
  const bool has_registers = reader->take<uint64_t>() != kNoRegisters;
  for (size_t i = 0; has_registers && i < kRegisterCount; ++i)
    sample->registers[i] = reader->take<uint64_t>();
  const auto room = reader->take<uint64_t>();
  if (room == 0 || reader->is_short() || room > reader->rest().size()) return;
  const std::span<const uint8_t> copy = reader->take_bytes(room);
  const uint64_t byte_count = std::min<uint64_t>(reader->take<uint64_t>(), room);
  sample->stack.assign(copy.begin(), copy.begin() + static_cast<ptrdiff_t>(byte_count));
  sample->has_stack = has_registers;
}

}  // namespace

void SampleRing::copy(uint64_t offset, void* to, size_t byte_count) const {
  const auto* data = reinterpret_cast<const uint8_t*>(page_) + page_bytes_;
  const size_t at = offset & (data_bytes_ - 1);
  const size_t first = std::min(byte_count, data_bytes_ - at);
  std::memcpy(to, data + at, first);
  std::memcpy(static_cast<uint8_t*>(to) + first, data, byte_count - first);
}

bool SampleRing::drain(const Visitor& visit) {
  const uint64_t head =
      __atomic_load_n(&page_->data_head, __ATOMIC_ACQUIRE);  // pairs with kernel:perf_ring
  uint64_t tail = page_->data_tail;
  while (head - tail >= sizeof(perf_event_header) && head - tail <= data_bytes_) {
    perf_event_header header;
    copy(tail, &header, sizeof(header));
    if (header.size < sizeof(header) || header.size > head - tail) break;
    record_.resize(header.size);
    copy(tail, record_.data(), record_.size());
    visit(header, std::span<const uint8_t>(record_).subspan(sizeof(header)));
    tail += header.size;
  }
  const bool is_whole = tail == head;
  __atomic_store_n(&page_->data_tail, head, __ATOMIC_RELEASE);  // pairs with kernel:perf_ring
  return is_whole;
}

bool parse_sample(std::span<const uint8_t> body, SampleTail tail, RawSample* sample) {
  Reader reader(body);
  sample->frames.clear();
  const auto ip = reader.take<uint64_t>();
  reader.take<int32_t>();  // pid
  sample->tid = reader.take<int32_t>();
  sample->time_ns = reader.take<uint64_t>();
  sample->period = reader.take<uint64_t>();
  take_chain(&reader, sample);
  if (sample->frames.empty()) sample->frames.push_back(ip);
  sample->has_stack = false;
  if (tail == SampleTail::kBranches) {
    sample->frames.resize(1);
    take_branches(&reader, sample);
  } else if (tail == SampleTail::kStackCopy) {
    take_stack(&reader, sample);
  }
  return !reader.is_short();
}

bool parse_mapping(std::span<const uint8_t> body, RawMapping* mapping) {
  Reader reader(body);
  reader.take<uint64_t>();  // pid, tid
  mapping->start = reader.take<uint64_t>();
  mapping->end = mapping->start + reader.take<uint64_t>();
  mapping->file_offset = reader.take<uint64_t>();
  reader.take<uint64_t>();  // device
  mapping->inode = reader.take<uint64_t>();
  reader.take<uint64_t>();  // its generation
  reader.take<uint64_t>();  // protection, flags
  // Thread and time stand behind the name (sample_id_all).
  std::span<const uint8_t> name = reader.rest();
  constexpr size_t kTrailerBytes = 16;
  if (reader.is_short() || name.size() < kTrailerBytes) return false;
  std::memcpy(&mapping->time_ns, &name[name.size() - sizeof(uint64_t)], sizeof(uint64_t));
  name = name.first(name.size() - kTrailerBytes);
  const size_t length =
      static_cast<size_t>(std::find(name.begin(), name.end(), uint8_t{0}) - name.begin());
  mapping->path.assign(reinterpret_cast<const char*>(name.data()), length);
  return mapping->end > mapping->start;
}

bool parse_task(std::span<const uint8_t> body, RawTask* task) {
  Reader reader(body);
  task->pid = reader.take<int32_t>();
  reader.take<int32_t>();  // of the parent
  task->tid = reader.take<int32_t>();
  return !reader.is_short();
}

uint64_t parse_lost(std::span<const uint8_t> body) {
  Reader reader(body);
  reader.take<uint64_t>();  // id
  return reader.take<uint64_t>();
}

}  // namespace aon::perf
