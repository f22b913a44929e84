/// Records of CUPTI made by hand, with the lengths of CUDA 13.0.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "plugins/cupti/interface.h"

namespace aon::cupti::test {

constexpr size_t kKernelBytes = 216;
constexpr size_t kCopyBytes = 96;
constexpr size_t kSetBytes = 88;
constexpr size_t kCallBytes = 40;
constexpr size_t kOtherBytes = 56;
constexpr size_t kExternalBytes = 24;

class MadeRecord {
 public:
  MadeRecord(Kind kind, size_t byte_count) : bytes_(byte_count) { set(0, kind); }

  template <class T>
  MadeRecord& set(size_t offset, const T& value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof value);
    return *this;
  }
  const uint8_t* data() const { return bytes_.data(); }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

inline MadeRecord made_kernel(const char* name, uint64_t start_ns, uint64_t end_ns,
                              uint32_t stream = 7) {
  MadeRecord record(Kind::kConcurrentKernel, kKernelBytes);
  record.set(kernel::kStart, start_ns).set(kernel::kEnd, end_ns).set(kernel::kName, name);
  record.set(kernel::kDevice, uint32_t{1}).set(kernel::kContext, uint32_t{2});
  record.set(kernel::kStream, stream).set(kernel::kCorrelation, uint32_t{99});
  const uint32_t grid[] = {8, 4, 2};
  const uint32_t block[] = {128, 2, 1};
  return record.set(kernel::kGrid, grid).set(kernel::kBlock, block);
}

inline MadeRecord made_external_id(uint32_t kind, uint64_t id, uint32_t correlation) {
  MadeRecord record(Kind::kExternalCorrelation, kExternalBytes);
  record.set(external::kKind, kind).set(external::kId, id);
  return record.set(external::kCorrelation, correlation);
}

}  // namespace aon::cupti::test
