/// GPM (GPU performance monitoring, Hopper and later): how busy the units of a GPU were between two
/// looks, all at once and without multiplexing. It is not the hardware that profilers use, so it
/// runs beside them; the driver wants at least 100 ms between two looks.
/// Thread: the poller's.   Cost: two looks are kept; one is taken per reading.
#pragma once

#include <memory>
#include <optional>

#include "nvml/queries.h"

namespace aon::nvml {

/// Does the driver have GPM for this GPU?
bool has_gpm(const Functions& call, Handle gpu);

class Gpm {
 public:
  /// Of a GPU or, with `instance`, of a part of one (MIG).
  Gpm(const Functions& call, Handle gpu, std::optional<uint32_t> instance);
  ~Gpm();
  Gpm(const Gpm&) = delete;
  Gpm& operator=(const Gpm&) = delete;

  /// Takes a look; from the second one on, what happened since the last one.   Returns NVML's code.
  uint32_t read(Values* values);

 private:
  uint32_t look(Sample sample);

  const Functions& call_;
  Handle gpu_;
  std::optional<uint32_t> instance_;
  Sample earlier_ = nullptr;
  Sample later_ = nullptr;
  bool has_earlier_ = false;
  std::unique_ptr<GpmMetrics> metrics_;
};

}  // namespace aon::nvml
