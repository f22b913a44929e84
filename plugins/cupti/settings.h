/// What the environment says of the recording: the variables AON_CUPTI_... of docs/gpu-cupti.md but
/// the path (aon/cupti_library.h). A value that is none is told, and the default stands.
/// Thread: the one in cuInit: the program may change its environment later.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cupti/kinds.h"

namespace aon::cupti {

enum class Mode : uint8_t { kExclusive = 0, kYield, kOff };

struct Settings {
  static constexpr size_t kMaxRemark = 400;

  Mode mode = Mode::kExclusive;
  bool refuses_v2 = false;  ///< one client per process also where several can be
  /// A thread that launches holds a buffer of 1 MiB until the next flush.
  uint32_t memory_mib = 256;
  Wanted wanted = {.has_calls = true, .has_graph_nodes = false};
  char remark[kMaxRemark] = "";  ///< values that are none; "" all are well
};

Settings read_settings();

}  // namespace aon::cupti
