#include "core/agent/state.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "core/base/file.h"

namespace aon::agent {
namespace {

uint64_t bytes_of(const StateSizes& sizes) {
  return sizeof(StateHeader) + uint64_t{sizes.processes} * sizeof(ProcessCell) +
         uint64_t{sizes.streams} * sizeof(StreamCell) + uint64_t{sizes.files} * sizeof(FileCell) +
         uint64_t{sizes.metrics} * 2 * sizeof(MetricCell) +
         uint64_t{sizes.samples} * sizeof(SampleCell);
}

StateSizes sizes_within(uint64_t most_bytes) {
  StateSizes sizes{kMaxProcesses, kMaxStreams, kMaxFiles, kMaxMetrics, kMaxSamples};
  for (uint32_t i = 0; i < kMostHalvings && bytes_of(sizes) > most_bytes; ++i) {
    for (uint32_t* count :
         {&sizes.processes, &sizes.streams, &sizes.files, &sizes.metrics, &sizes.samples})
      *count /= 2;
  }
  return sizes;
}

}  // namespace

Result<State> State::map(int fd) {
  StateSizes sizes{};
  if (::pread(fd, &sizes, sizeof(sizes), offsetof(StateHeader, sizes)) != sizeof(sizes))
    return errno_error("cannot read", "the agent's state", errno);
  void* memory = ::mmap(nullptr, bytes_of(sizes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return errno_error("cannot map", "the agent's state", errno);
  State state;
  auto* at = static_cast<uint8_t*>(memory);
  state.header_ = reinterpret_cast<StateHeader*>(at);
  at += sizeof(StateHeader);
  state.processes_ = reinterpret_cast<ProcessCell*>(at);
  at += size_t{sizes.processes} * sizeof(ProcessCell);
  state.streams_ = reinterpret_cast<StreamCell*>(at);
  at += size_t{sizes.streams} * sizeof(StreamCell);
  state.files_ = reinterpret_cast<FileCell*>(at);
  at += size_t{sizes.files} * sizeof(FileCell);
  state.metrics_ = reinterpret_cast<MetricCell*>(at);
  at += size_t{sizes.metrics} * sizeof(MetricCell);
  state.samples_ = reinterpret_cast<SampleCell*>(at);
  at += size_t{sizes.samples} * sizeof(SampleCell);
  state.earlier_metrics_ = reinterpret_cast<MetricCell*>(at);
  return state;
}

Result<UniqueFd> State::create(uint64_t most_bytes) {
  const StateSizes sizes = sizes_within(most_bytes);
  UniqueFd fd(::memfd_create("aon-agent-state", MFD_CLOEXEC));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(bytes_of(sizes))) != 0 ||
      ::pwrite(fd.get(), &sizes, sizeof(sizes), offsetof(StateHeader, sizes)) != sizeof(sizes))
    return errno_error("cannot create", "the agent's state", errno);
  return fd;
}

uint32_t State::find_or_add_stream(uint32_t process, uint16_t slot,
                                   uint16_t context) const noexcept {
  const uint32_t count =
      header_->stream_count.load(std::memory_order_acquire);  // pairs with agent:cells
  for (uint32_t i = 0; i < count && i < sizes().streams; ++i) {
    const StreamCell& cell = streams_[i];
    if (cell.in_use.load(std::memory_order_acquire) != 0 &&  // pairs with agent:cells
        cell.process == process && cell.slot == slot && cell.context == context)
      return i;
  }
  return add_stream(process, slot, context);
}

uint32_t State::add_stream(uint32_t process, uint16_t slot, uint16_t context) const noexcept {
  uint32_t index = header_->stream_count.load(std::memory_order_relaxed);
  do {  // never more than there are, not for a moment: others go by it
    if (index >= sizes().streams) return kNoCell;
  } while (!header_->stream_count.compare_exchange_weak(
      index, index + 1, std::memory_order_acq_rel,  // pairs with agent:cells
      std::memory_order_relaxed));
  StreamCell& cell = streams_[index];
  cell.process = process;
  cell.slot = slot;
  cell.context = context;
  cell.in_use.store(1, std::memory_order_release);  // pairs with agent:cells
  return index;
}

void State::discard_uncommitted() const noexcept {
  const uint64_t last = commit();
  header_->progress.discard_after(last);
  for (uint32_t i = 0; i < header_->process_count.load(std::memory_order_relaxed); ++i) {
    processes_[i].written.discard_after(last);
    processes_[i].written_program.discard_after(last);
    processes_[i].partial.discard_after(last);
  }
  for (uint32_t i = 0; i < header_->stream_count.load(std::memory_order_relaxed); ++i)
    streams_[i].progress.discard_after(last);
  for (uint32_t i = 0; i < header_->file_count.load(std::memory_order_relaxed); ++i)
    files_[i].progress.discard_after(last);
}

uint64_t State::sum_cpu_time_ns() const {
  std::map<std::pair<int32_t, uint64_t>, uint64_t> longest;
  const uint32_t count =
      header_->process_count.load(std::memory_order_acquire);  // pairs with agent:cells
  for (uint32_t i = 0; i < count; ++i) {
    const ProcessCell& cell = processes_[i];
    uint64_t& cpu_ns = longest[{cell.pid, cell.start_time_ticks}];
    cpu_ns = std::max(cpu_ns, cell.cpu_time_ns.load(std::memory_order_relaxed));
  }
  uint64_t sum_ns = 0;
  for (const auto& [identity, cpu_ns] : longest) sum_ns += cpu_ns;
  return sum_ns;
}

}  // namespace aon::agent
