/// What the process of a communicator's timeline has waited for late members of NCCL's operations,
/// as a metric on a METRIC location beside it: in seconds so far, told where the part of an
/// operation begins and ends on the GPU. It is known when all events have passed.
/// Owner: Otf2Writer.   Thread: one.   Cost: two chunks of OTF2's memory; some ns per value.
#pragma once

#include <otf2/otf2.h>

#include <deque>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "writers/nccl/lateness.h"
#include "writers/otf2/definitions.h"
#include "writers/writer.h"

namespace aon::writers::otf2 {

class NcclWaits {
 public:
  explicit NcclWaits(nccl::LatenessAnalysis* lateness) : lateness_(lateness) {}

  /// Writes all of it, within `range`, and appends the locations to `written`, which points at what
  /// lives here. What cannot be read is missing: failure() says why. A file that cannot be written
  /// is the end of the whole archive: OTF2 cannot go on behind an error
  /// (docs/decisions/014-otf2-failures.md).
  Status write(OTF2_Archive* archive, const Model& model, uint32_t metric_class,
               const TimeRange& range, std::vector<WrittenLocation>* written);
  bool is_empty() const { return locations_.empty(); }
  /// "": all was read.
  const std::string& failure() const { return failure_; }

 private:
  Status close(OTF2_Archive* archive, std::vector<WrittenLocation>* written);

  nccl::LatenessAnalysis* lateness_;  ///< null: there is no such metric
  OTF2_EvtWriter* file_ = nullptr;
  std::deque<Location> locations_;
  std::string failure_;
};

}  // namespace aon::writers::otf2
