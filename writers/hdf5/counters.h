/// /counters of profile.h5: hardware counters by rank, location and region; joined with /profile.
/// Owner: the writer.   Thread: one.   Errors: H5Error.
#pragma once

#include <span>

#include "writers/hdf5/column.h"
#include "writers/profile/counters.h"
#include "writers/writer.h"

namespace aon::writers::hdf5 {

class CounterTable {
 public:
  CounterTable(hid_t file, const Model& model);

  void append(const Group& group, uint64_t location,
              std::span<const profile::CounterStatistics> rows);
  void finish() { table_.finish(); }

 private:
  const Model& model_;
  Table table_;
  Column<int64_t>& rank_;
  Column<uint32_t>& process_;
  Column<uint64_t>& location_;
  Column<int64_t>& region_;
  TextColumn& counter_;
  Column<uint64_t>& count_;
  Column<uint64_t>& inexact_count_;
  Column<uint64_t>& inclusive_;
  Column<uint64_t>& exclusive_;
};

}  // namespace aon::writers::hdf5
