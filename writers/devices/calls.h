/// The calls that started work, by correlation id. A call of the runtime and that of the driver
/// inside of it may have the same id: they are one, the outer.
///
/// Ids are of 32 bits, and each call of CUDA takes one: a job of hours has them several times, and
/// not all calls are recorded. So a call is only of work that begins within kLongestNs of it: in
/// that time no process calls CUDA 2^32 times, which were 7 million calls a second where one takes
/// a microsecond and more. Work that waits longer in its stream, as behind a kernel that hangs, has
/// a call that is not known: an idle device did not wait for that call.
/// Thread: any.
#pragma once

#include <cstdint>

namespace aon::writers::devices {

struct Call {
  static constexpr uint64_t kLongestNs = 600'000'000'000;
  static constexpr uint64_t kClocksNs = 1'000'000'000;  ///< between device and host, at most

  uint32_t correlation;
  uint32_t thread : 30;
  uint32_t is_of_graph : 1;   ///< it launched a graph, whose kernels all have its correlation id
  uint32_t is_of_kernel : 1;  ///< it launched a kernel
  uint64_t start_ns;
  uint64_t end_ns;

  bool operator<(const Call& other) const {
    return correlation != other.correlation ? correlation < other.correlation
                                            : start_ns < other.start_ns;
  }
  /// Of two in order.
  bool encloses(const Call& inner) const {
    return correlation == inner.correlation && inner.start_ns <= end_ns;
  }
  /// Whether work that begins then may be of it or of an earlier one, and is of none behind it.
  bool is_before(uint32_t id, uint64_t work_start_ns) const {
    return correlation != id ? correlation < id : start_ns <= work_start_ns + kClocksNs;
  }
  /// Of the last one that is_before() it.
  bool launched(uint32_t id, uint64_t work_start_ns) const {
    return correlation == id && work_start_ns <= end_ns + kLongestNs;
  }
};

}  // namespace aon::writers::devices
