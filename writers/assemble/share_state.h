/// What a share's second file and the file of the steps hold. Internal to writers/assemble.
/// Thread: one.   Errors: kDamaged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "writers/assemble/shares.h"
#include "writers/assemble/span_window.h"
#include "writers/share/files.h"

namespace aon::writers {

/// Of a whole share, beside what its writers know of each group.
struct ShareResult {
  std::string folder;              ///< in the folder of the shares: event files and series
  std::vector<WaitRow> wait_rows;  ///< of its locations
  Outcome outcome;
  std::vector<LocationTally> tallies;
  LeftOutSpans left_out;
  std::vector<std::string> failures;  ///< by writer; "" none
};

void save_result(StateOut* out, const Model& model, const ShareResult& result);
Status load_result(StateIn* in, const Model& model, ShareResult* result);

/// What the writers know of the group that has passed; a failed one nothing.
/// Each has a block of its own: there may be much of one.
Status save_writers(std::vector<WriterSlot>* writers, uint32_t group, share::FileWriter* file);
/// Given to the same writers of the combiner.
Status load_writers(const share::FileReader& file, uint32_t group,
                    std::vector<WriterSlot>* writers);

Status write_steps(const std::filesystem::path& work, const StepPlan& steps);
Status read_steps(const std::filesystem::path& work, const Model& model, StepPlan* steps);

}  // namespace aon::writers
