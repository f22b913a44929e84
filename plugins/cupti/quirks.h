/// What differs between versions of CUPTI, by cuptiGetVersion(). CUDA 12.9 is 27, 13.0 is 130000,
/// 13.0 update 1 is 130001. Sources: NVIDIA's release notes.   Thread: a value.
#pragma once

#include <cstdint>

namespace aon::cupti {

struct Quirks {
  bool may_refuse_buffers;  ///< a null buffer is an answer; before 12.9 it crashes
  bool has_graph_fields;    ///< kernels, copies and sets tell their graph
  bool hangs_on_disable;    ///< disabling kernels may never return: kinds stay on
  bool has_subscribers;     ///< each client has buffers and kinds of its own (the _v2 functions);
                            ///< 13.2 has some of them as a preview
};

constexpr Quirks quirks_of(uint32_t version) {
  return {
      .may_refuse_buffers = version >= 27,
      .has_graph_fields = version >= 18,
      .hangs_on_disable = version == 130000,
      .has_subscribers = version >= 130300,
  };
}

}  // namespace aon::cupti
