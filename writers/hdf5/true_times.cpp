#include "writers/hdf5/true_times.h"

#include <string>

#include "writers/hdf5/column.h"
#include "writers/hdf5/tables.h"
#include "writers/nccl/bandwidth.h"

namespace aon::writers::hdf5 {

void write_true_times(hid_t file, const char* path, const char* communicators, const Model& model,
                      const std::vector<TrueTimes>& rows, uint64_t left_out_count,
                      const std::function<int64_t(uint32_t)>& row_of) {
  constexpr double kGiga = 1e9;
  Table table(file, path, "what operations take when nobody is late, by their bytes");
  const std::string row_text = std::string("row of ") + communicators;
  auto& communicator = table.add<int64_t>("communicator", {"1", row_text.c_str()});
  auto& region = table.add<int64_t>("region", {"1", "row of /regions: the function"});
  auto& bytes = table.add<uint64_t>("bytes", {"bytes", "of one call"});
  auto& count = table.add<uint64_t>("count", {"1", "operations"});
  auto& least = table.add<uint64_t>("min_ns", {"ns", "shortest"});
  auto& usual = table.add<uint64_t>("usual_ns", {"ns", "median"});
  auto& most = table.add<uint64_t>("max_ns", {"ns", "longest"});
  auto& slow = table.add<uint64_t>("slow_count", {"1", "took twice the usual or more"});
  auto& beyond = table.add<uint64_t>("slow_ns", {"ns", "these, beyond the usual"});
  auto& algbw = table.add<double>("algbw", {"1e9 B/s", "of the usual time"});
  auto& busbw = table.add<double>("busbw", {"1e9 B/s", "of the usual time"});
  for (const TrueTimes& row : rows) {
    const nccl::Bandwidth bandwidth =
        nccl::bandwidth(model.regions[row.region].name, row.bytes, row.usual_ns,
                        model.communicators[row.communicator].rank_count);
    communicator.append(row_of(row.communicator));
    region.append(row.region);
    bytes.append(row.bytes);
    count.append(row.count);
    least.append(row.least_ns);
    usual.append(row.usual_ns);
    most.append(row.longest_ns);
    slow.append(row.slow_count);
    beyond.append(row.slow_ns);
    algbw.append(bandwidth.algorithm_bytes_per_s / kGiga);
    busbw.append(bandwidth.bus_bytes_per_s / kGiga);
  }
  table.finish();
  set_attribute(table.group(), "operations_left_out", static_cast<int64_t>(left_out_count));
}

}  // namespace aon::writers::hdf5
