/// RAII forms of annotate.h: a region or a step that ends with its scope, exceptions included.
///
///     static const aon_region_t kHalo = aon_region("halo");
///     aon::ScopedRegion halo(kHalo);
///
/// Thread: the one that made it.   Cost: that of annotate.h.
#pragma once

#include <aon/annotate.h>

namespace aon {

class ScopedRegion {
 public:
  explicit ScopedRegion(aon_region_t region) : region_(region) { aon_region_begin(region_); }
  /// Looks the name up each time.
  explicit ScopedRegion(const char* name) : ScopedRegion(aon_region(name)) {}
  ~ScopedRegion() { aon_region_end(region_); }
  ScopedRegion(const ScopedRegion&) = delete;
  ScopedRegion& operator=(const ScopedRegion&) = delete;

 private:
  aon_region_t region_;
};

class ScopedStep {
 public:
  explicit ScopedStep(int64_t number) { aon_step_begin(number); }
  ~ScopedStep() { aon_step_end(); }
  ScopedStep(const ScopedStep&) = delete;
  ScopedStep& operator=(const ScopedStep&) = delete;
};

}  // namespace aon
