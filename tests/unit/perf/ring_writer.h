/// Plays the kernel's part: puts records into the pages of a ring.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "plugins/perf/ring_pages.h"

namespace aon::perf::test {

class RingWriter {
 public:
  RingWriter(void* pages, size_t wanted_bytes, size_t page_bytes = ring_page_bytes())
      : page_(static_cast<perf_event_mmap_page*>(pages)),
        page_bytes_(page_bytes),
        data_bytes_(ring_data_bytes(wanted_bytes, page_bytes)) {}

  void put(uint32_t type, const std::vector<uint8_t>& body) {
    perf_event_header header{};
    header.type = type;
    header.size = static_cast<uint16_t>(sizeof(header) + body.size());
    std::vector<uint8_t> bytes(sizeof(header));
    std::memcpy(bytes.data(), &header, sizeof(header));
    bytes.insert(bytes.end(), body.begin(), body.end());
    auto* data = static_cast<uint8_t*>(static_cast<void*>(page_)) + page_bytes_;
    for (size_t i = 0; i < bytes.size(); ++i) data[(page_->data_head + i) % data_bytes_] = bytes[i];
    page_->data_head += bytes.size();
  }

  /// `frames` innermost first.
  void sample(int32_t tid, uint64_t time_ns, const std::vector<uint64_t>& frames,
              uint64_t period = 1000) {
    put(PERF_RECORD_SAMPLE, sample_body(tid, time_ns, frames, period));
  }
  static std::vector<uint8_t> sample_body(int32_t tid, uint64_t time_ns,
                                          const std::vector<uint64_t>& frames, uint64_t period) {
    std::vector<uint8_t> body;
    append(&body, frames.empty() ? uint64_t{0} : frames[0]);
    append(&body, int32_t{1});
    append(&body, tid);
    append(&body, time_ns);
    append(&body, period);
    append(&body, uint64_t{frames.size() + 1});
    append(&body, static_cast<uint64_t>(PERF_CONTEXT_USER));
    for (const uint64_t frame : frames) append(&body, frame);
    return body;
  }
  void task(uint32_t type, int32_t pid, int32_t tid) {
    std::vector<uint8_t> body;
    for (const int32_t value : {pid, pid, tid, pid}) append(&body, value);
    append(&body, uint64_t{0});
    put(type, body);
  }
  void mapping(uint64_t start, uint64_t length, uint64_t offset, const std::string& path,
               uint64_t time_ns) {
    std::vector<uint8_t> body;
    append(&body, uint64_t{0});
    for (const uint64_t value : {start, length, offset, uint64_t{0}, uint64_t{0}, uint64_t{0}})
      append(&body, value);
    append(&body, uint64_t{5});
    body.insert(body.end(), path.begin(), path.end());
    body.resize(body.size() + 8 - path.size() % 8);
    append(&body, uint64_t{0});
    append(&body, time_ns);
    put(PERF_RECORD_MMAP2, body);
  }
  void lost(uint64_t count) {
    std::vector<uint8_t> body;
    append(&body, uint64_t{7});
    append(&body, count);
    put(PERF_RECORD_LOST, body);
  }

  template <class T>
  static void append(std::vector<uint8_t>* bytes, T value) {
    const auto* first = reinterpret_cast<const uint8_t*>(&value);
    bytes->insert(bytes->end(), first, first + sizeof(value));
  }

 private:
  perf_event_mmap_page* page_;
  size_t page_bytes_;
  size_t data_bytes_;
};

}  // namespace aon::perf::test
