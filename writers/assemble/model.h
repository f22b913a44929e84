/// Job definitions -> Model: who is which rank, one id for what many processes named, where each
/// timeline stands. Owner: the assembler.   Thread: one.   Cost: proportional to definitions and
/// block headers, never to events.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/base/result.h"
#include "core/clock/clock_map.h"
#include "core/spool/files.h"
#include "core/spool/job.h"
#include "writers/assemble/record_load.h"
#include "writers/symbols/debug_search.h"
#include "writers/writer.h"

namespace aon::writers {

constexpr uint32_t kDefaultOtf2Locations = 4096;
constexpr uint32_t kMaxWorld = 1u << 18;  ///< larger ranks are damage and get no rank

/// A Model with all it points to. Not copied: the model holds pointers into it.
struct JobModel {
  spool::Job job;
  Model model;
  std::vector<clock::ClockMap> clocks;  ///< by node
  /// Segments per node and process.
  std::vector<std::map<uint32_t, std::vector<spool::SegmentName>>> segments;
  std::vector<std::unordered_map<uint32_t, uint32_t>> node_metric_maps;  ///< local -> global
  RecordLoad load;  ///< by the headers of blocks
  uint64_t series_record_count = 0;
};

/// Reads the job below `folder` and numbers everything. At most `otf2_locations` timelines are
/// marked for the archive; above that only master threads are. Names of functions come from
/// where `search` says. Without `has_call_paths` no names are looked up.
/// Errors: kNotFound without a spool or processes, kIo.
Result<std::unique_ptr<JobModel>> build_model(const std::filesystem::path& folder,
                                              uint32_t otf2_locations,
                                              const symbols::DebugSearch& search = {},
                                              bool has_call_paths = true);

}  // namespace aon::writers
