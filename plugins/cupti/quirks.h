/// What differs between versions of CUPTI, by cuptiGetVersion(). CUDA 12.4 is 22, 12.5 23, 12.6 24,
/// 12.9 27, 13.0 130000, 13.0 update 1 130001; before 12.9 an update has the number of its version.
/// Sources: cupti_version.h and NVIDIA's release notes; a fault without a first version is taken
/// for one of all before the one that is free of it.   Thread: a value.
#pragma once

#include <aon/cupti_version.h>

#include <cstdint>

namespace aon::cupti {

struct Quirks {
  bool may_refuse_buffers;         ///< a null buffer is an answer; before 12.9 it crashes
  bool has_graph_fields;           ///< kernels, copies and sets tell their graph
  bool crashes_on_graphs;          ///< recorded as one: they are recorded node by node
  bool crashes_on_device_buffers;  ///< long after the start, with graphs: CUPTI's buffers are to be
                                   ///< pinned memory of the host
  bool confuses_graph_calls;       ///< when kinds were off and are on again, the correlation ids of
                                   ///< graphs are others'
  bool has_overhead_threads;       ///< overhead has thread ids of the kind that was asked for
  bool lacks_device_waits;         ///< no record of waiting for a device or a context
  bool hangs_on_disable;           ///< disabling kernels may never return: kinds stay on
  bool crashes_on_flush;           ///< cuptiActivityFlushAll may: nothing can be done
  bool slows_with_calls;           ///< by each call of CUPTI: it is asked for less
  bool has_subscribers;  ///< each client has buffers and kinds of its own (the _v2 functions);
                         ///< 13.2 has some of them as a preview
};

constexpr Quirks quirks_of(uint32_t version) {
  return {
      .may_refuse_buffers = version >= 27,
      .has_graph_fields = version >= 18,
      .crashes_on_graphs = version < kCuptiWithGraphs,
      .crashes_on_device_buffers = version < 130001,
      .confuses_graph_calls = version < 130101,
      .has_overhead_threads = version >= 22,
      // Of cudaDeviceSynchronize() and cuCtxSynchronize_v2(), which came with 13.0.
      .lacks_device_waits = version == kCuptiWithoutDeviceWaits,
      // Both: "fixed a potential ..." in 13.0 update 1, without a first version.
      .hangs_on_disable = version < kCuptiWithSafeFlush,
      .crashes_on_flush = version < kCuptiWithSafeFlush,
      .slows_with_calls = version >= 130200 && version < 130300,
      .has_subscribers = version >= kCuptiWithSubscribers,
  };
}

}  // namespace aon::cupti
