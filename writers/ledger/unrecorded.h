/// What is missing of the work of GPUs, and why: the sentence about it.
/// Thread: any.   Cost: a pass over the rows.
#pragma once

#include <string>

#include "writers/devices/devices.h"
#include "writers/writer.h"

namespace aon::writers::ledger {

struct UnrecordedText {
  std::string text;      ///< empty: nothing is missing
  double total_s = 0;    ///< of all processes and causes
  bool is_loss = false;  ///< not only what the budget and the program have left out
};
UnrecordedText unrecorded_text(const Model& model, const DeviceSummary& devices);

}  // namespace aon::writers::ledger
