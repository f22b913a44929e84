#include "writers/assemble/model.h"

#include <algorithm>

#include "writers/assemble/clocks.h"
#include "writers/assemble/model_parts.h"

namespace aon::writers {

uint64_t RecordLoad::record_count() const noexcept {
  uint64_t sum = 0;
  for (const Block& block : blocks_) sum += block.record_count;
  return sum;
}

uint64_t RecordLoad::window_start_ns(uint64_t record_count) const {
  if (this->record_count() <= record_count) return 0;
  struct Edge {
    uint64_t time_ns;
    double rate;  ///< records per ns that begin (or, below 0, end) here, for one who walks back
  };
  std::vector<Edge> edges;
  edges.reserve(blocks_.size() * 2);
  for (const Block& block : blocks_) {
    const uint64_t end_ns = std::max<uint64_t>(block.end_ns, 1);
    const uint64_t begin_ns = std::min(block.begin_ns, end_ns - 1);
    const double rate =
        static_cast<double>(block.record_count) / static_cast<double>(end_ns - begin_ns);
    edges.push_back({end_ns, rate});
    edges.push_back({begin_ns, -rate});
  }
  std::sort(edges.begin(), edges.end(),
            [](const Edge& a, const Edge& b) { return a.time_ns > b.time_ns; });
  double room = static_cast<double>(record_count);
  double rate = 0;
  uint64_t at_ns = edges.front().time_ns;
  for (const Edge& edge : edges) {
    const double records = rate * static_cast<double>(at_ns - edge.time_ns);
    if (records > room) return at_ns - static_cast<uint64_t>(room / rate);
    room -= records;
    rate += edge.rate;
    at_ns = edge.time_ns;
  }
  return at_ns;  // what rounding leaves of the last
}

Result<std::unique_ptr<JobModel>> build_model(const std::filesystem::path& folder,
                                              uint32_t otf2_locations, bool uses_debuginfod,
                                              bool has_call_paths) {
  Result<spool::Job> job = spool::read_job(folder);
  if (!job) return job.error();
  auto parts = std::make_unique<JobModel>();
  parts->job = std::move(job).value();
  // Folders that hold nothing yet, or only a ring file that became a folder of its own.
  std::erase_if(parts->job.nodes, [](const spool::Node& node) {
    return node.processes.empty() && node.definition.format == 0;
  });
  parts->model.job = &parts->job;
  for (const spool::Node& node : parts->job.nodes) {
    Result<std::map<uint32_t, std::vector<spool::SegmentName>>> segments =
        spool::list_segments(node.folder);
    if (!segments) return segments.error();
    parts->segments.push_back(std::move(segments).value());
  }
  build_groups(parts.get());
  build_clocks(parts.get());
  const bool has_agent =
      std::any_of(parts->job.nodes.begin(), parts->job.nodes.end(),
                  [](const spool::Node& node) { return node.definition.format != 0; });
  if (parts->model.groups.empty() && !has_agent) {
    return Error{Code::kNotFound,
                 "no process in " + (folder / "spool").string() + ": nothing was recorded"};
  }
  build_regions(parts.get());
  build_communicators(parts.get());
  build_windows(parts.get());
  build_files(parts.get());
  build_open_calls(parts.get());
  build_stacks(parts.get(), uses_debuginfod);
  if (has_call_paths) build_call_paths(parts.get(), uses_debuginfod);
  Status status = build_locations(parts.get(), otf2_locations);
  if (!status) return status.error();
  return parts;
}

}  // namespace aon::writers
