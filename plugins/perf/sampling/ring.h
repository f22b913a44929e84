/// A perf ring as the kernel fills it for one thread, and the records in it.
///
///     kernel --records--> data[tail .. head) --drain()--> visitor, then tail = head
///
/// The kernel alone writes the ring, and it outlives the thread and its process: what was sampled
/// before a SIGKILL is read after it.
/// Owner: one thread of the agent.   Cost: a copy of each record, no syscall.
#pragma once

#include <linux/perf_event.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "perf/ring_pages.h"

namespace aon::perf {

constexpr size_t kMaxFrames = 127;  ///< of the kernel (perf_event_max_stack)

/// What is asked of the kernel beside each sample; the order of the fields in a record is perf's.
constexpr uint64_t kSampleFields = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                   PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN;

/// The ring's pages: one of control, then a power of two of data.
class SampleRing {
 public:
  using Visitor = std::function<void(const perf_event_header&, std::span<const uint8_t> body)>;

  SampleRing(void* pages, size_t data_bytes, size_t page_bytes = ring_page_bytes())
      : page_(static_cast<perf_event_mmap_page*>(pages)),
        page_bytes_(page_bytes),
        data_bytes_(data_bytes) {}

  /// Visits each record, oldest first, and gives its room back. False: one could not be; the rest
  /// of the ring is skipped.
  bool drain(const Visitor& visit);
  void* pages() const { return page_; }
  size_t data_bytes() const { return data_bytes_; }

 private:
  void copy(uint64_t offset, void* to, size_t byte_count) const;

  perf_event_mmap_page* page_;
  size_t page_bytes_;
  size_t data_bytes_;
  std::vector<uint8_t> record_;
};

/// What to expect behind the fields of kSampleFields.
enum class SampleTail { kNothing, kBranches, kStackCopy };

#if defined(__x86_64__)
/// BX, BP, SP, IP, R12 to R15 (asm/perf_regs.h), in this order in a record.
constexpr uint64_t kRegisterMask = 1u << 1 | 1u << 6 | 1u << 7 | 1u << 8 | 0xfu << 20;
#else
constexpr uint64_t kRegisterMask = 0;
#endif
constexpr size_t kRegisterCount = 8;

/// One PERF_RECORD_SAMPLE.
struct RawSample {
  int32_t tid = 0;
  uint64_t time_ns = 0;  ///< of the event's clock
  uint64_t period = 0;
  std::vector<uint64_t> frames;  ///< addresses of user code, innermost first; callers are return
                                 ///< addresses
  // Of SampleTail::kStackCopy.
  bool has_stack = false;
  uint64_t registers[kRegisterCount] = {};  ///< as kRegisterMask says
  std::vector<uint8_t> stack;               ///< from the stack pointer on
};
/// Branch records of calls (LBR) give the callers; a stack copy is left to an unwinder.
/// False: the record is not as kSampleFields and `tail` say.
bool parse_sample(std::span<const uint8_t> body, SampleTail tail, RawSample* sample);

/// PERF_RECORD_MMAP2 of executable memory.
struct RawMapping {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t file_offset = 0;
  uint64_t inode = 0;
  std::string path = {};
  uint64_t time_ns = 0;  ///< when; 0: before it was watched
};
bool parse_mapping(std::span<const uint8_t> body, RawMapping* mapping);

/// PERF_RECORD_FORK and EXIT.
struct RawTask {
  int32_t pid = 0;
  int32_t tid = 0;
};
bool parse_task(std::span<const uint8_t> body, RawTask* task);

/// PERF_RECORD_LOST: how many records.
uint64_t parse_lost(std::span<const uint8_t> body);

}  // namespace aon::perf
