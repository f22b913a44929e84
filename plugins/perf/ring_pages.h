/// Sizes of a perf ring's parts, which are whole pages of the kernel: of 4 KiB, on ARM also of 16
/// or 64.
/// Thread: any.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>

namespace aon::perf {

inline size_t ring_page_bytes() {
  static const auto page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return page_bytes;
}

/// Of the data where `wanted_bytes` are, a power of two: without any all would be lost silently.
constexpr size_t ring_data_bytes(size_t wanted_bytes, size_t page_bytes) {
  return std::max(wanted_bytes, page_bytes);
}

}  // namespace aon::perf
