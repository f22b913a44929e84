// bench_nodes RANKS RANKS_PER_NODE [CALLS_PER_RANK [SAMPLES]]: writes the spools of a made-up
// launch and assembles it in a child process; prints seconds, CPU, the child's peak resident size,
// and bytes and files of spool and archive. Everything lies in a temporary folder and goes at the
// end.
//
// A rank defines what one of a real solver does: 40 regions, MPI_COMM_WORLD, a duplicate of it, its
// row and its column of a process grid, four metrics, and 60 call paths of its samples. With
// SAMPLES each rank and each node has that many of a metric over time.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/assemble.h"

namespace {

using namespace aon;
namespace fs = std::filesystem;

struct Shape {
  uint32_t ranks;
  uint32_t ranks_per_node;
  uint32_t calls;
  uint32_t samples;
};

constexpr uint32_t kRowLength = 100;  ///< ranks in a row of the process grid
constexpr uint32_t kMetrics = 4;
constexpr uint32_t kCallPaths = 60;
constexpr uint32_t kMapping = 3;

struct CallPaths {
  CallPathsDefinition head;
  CallPathNode nodes[kCallPaths];
};

std::vector<std::pair<std::string, RegionRole>> regions() {
  std::vector<std::pair<std::string, RegionRole>> all{{"MPI_Send", RegionRole::kPointToPoint},
                                                      {"MPI_Recv", RegionRole::kPointToPoint},
                                                      {"MPI_Allreduce", RegionRole::kAllToAll}};
  for (int i = 0; all.size() < 40; ++i)
    all.emplace_back(fmt::format("solver_phase_{}", i), RegionRole::kFunction);
  return all;
}

/// Local ids 2, 3 and 4.
void define_communicators(const Shape& shape, uint32_t rank, uint32_t process,
                          test::NodeSpool* node) {
  const uint32_t row = rank / kRowLength;
  const uint32_t column = rank % kRowLength;
  const uint32_t rest = shape.ranks - row * kRowLength;
  const CommunicatorDefinition all[] = {
      {1'000'000, 2, 0, shape.ranks, rank, CommunicatorKind::kIntra, {}},
      {2'000'000 + row, 3, 2, std::min(rest, kRowLength), column, CommunicatorKind::kIntra, {}},
      {3'000'000 + column,
       4,
       2,
       (shape.ranks - column - 1) / kRowLength + 1,
       row,
       CommunicatorKind::kIntra,
       {}}};
  const char* names[] = {"solver", "row", "column"};
  for (int i = 0; i < 3; ++i)
    node->define(process, DefinitionType::kCommunicator, all[i], {names[i]});
}

void define_metrics(uint32_t process, test::NodeSpool* node) {
  for (uint32_t i = 0; i < kMetrics; ++i) {
    MetricDefinition metric{};
    metric.id = i;
    node->define(process, DefinitionType::kMetric, metric,
                 {fmt::format("counter {}", i), "#", "of the processor"});
  }
}

/// Every rank has most of its paths in common with the others, and some of its own.
void define_call_paths(uint32_t rank, uint32_t process, test::NodeSpool* node) {
  MappingDefinition mapping{};
  mapping.process = process;
  mapping.id = kMapping;
  mapping.start = 0x400000;
  mapping.end = 0x800000;
  node->define(process, DefinitionType::kMapping, mapping, {"/opt/app/solver"});
  CallPaths paths{};
  paths.head = {process, 0, kCallPaths, 0};
  for (uint32_t i = 0; i < kCallPaths; ++i) {
    const uint32_t code = i < kCallPaths - 5 ? i : i + 16 * (rank % 64);
    paths.nodes[i] = {i == 0 ? kNoCallPath : (i - 1) / 2, kMapping, 0x1000 + 64 * uint64_t{code}};
  }
  node->define(process, DefinitionType::kCallPaths, paths);
}

/// Ring exchange and an Allreduce in every eighth call.
std::vector<Record> calls_of(const Shape& shape, uint32_t rank) {
  std::vector<Record> records;
  uint64_t now = 1000;
  const auto next = static_cast<int32_t>((rank + 1) % shape.ranks);
  const auto last = static_cast<int32_t>((rank + shape.ranks - 1) % shape.ranks);
  for (uint32_t i = 0; i < shape.calls; ++i, now += 1000) {
    if (i % 8 == 7) {
      records.push_back(
          test::collective_record(3, now, now + 400, CollectiveOperation::kAllreduce, -1, 8));
    } else if (i % 2 == 0) {
      records.push_back(test::message_record(1, now, now + 300, kOutgoing, next, 7, 1024));
    } else {
      records.push_back(test::message_record(2, now, now + 300, kIncoming, last, 7, 1024));
    }
  }
  return records;
}

/// Of a node where `process` is kNodeProcess.
void add_series(const Shape& shape, uint32_t process, test::NodeSpool* node) {
  if (shape.samples == 0) return;
  MetricDefinition metric{};
  metric.id = 0x80000002;
  metric.node_wide = process == spool::kNodeProcess ? 1 : 0;
  node->define(process, DefinitionType::kMetric, metric, {"bench::load", "1", "made up"});
  std::vector<Record> records;
  for (uint32_t i = 0; i < shape.samples; ++i)
    records.push_back(test::sample_record(metric.id, 1000 + i * 1'000'000, i));
  node->add_records(process, spool::kSeriesSlot, records);
}

void write_spools(const fs::path& job, const Shape& shape) {
  for (uint32_t first = 0; first < shape.ranks; first += shape.ranks_per_node) {
    test::NodeSpool node(job, fmt::format("n{:05}", first / shape.ranks_per_node), 60);
    for (uint32_t i = 0; i < shape.ranks_per_node && first + i < shape.ranks; ++i) {
      node.add_process(i, static_cast<int32_t>(first + i), shape.ranks, regions());
      define_communicators(shape, first + i, i, &node);
      define_metrics(i, &node);
      define_call_paths(first + i, i, &node);
      node.add_records(i, 1, calls_of(shape, first + i));
      add_series(shape, i, &node);
    }
    add_series(shape, spool::kNodeProcess, &node);
    node.finish();
  }
}

struct Size {
  uint64_t bytes = 0;
  uint64_t files = 0;
};

Size size_of(const fs::path& folder) {
  Size size;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    size.bytes += entry.file_size();
    ++size.files;
  }
  return size;
}

int assemble_and_report(const fs::path& job, const Shape& shape) {
  const Size spool = size_of(job);
  writers::AssembleOptions options;
  options.disk_cap_bytes = uint64_t{1} << 40;
  const Result<writers::AssembleReport> report = writers::assemble(job, options);
  if (!report) {
    std::fprintf(stderr, "bench_nodes: %s\n", report.error().message.c_str());
    return 1;
  }
  for (const std::string& warning : report->warnings) std::printf("warning: %s\n", warning.c_str());
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double cpu_s = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                       static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
  const Size all = size_of(job);
  std::printf(
      "%u ranks, %u a node, %u calls a rank: %.2f s, %.2f s CPU, peak %ld MiB; spool %.1f MiB in "
      "%lu files, archive %.1f MiB in %lu files\n",
      shape.ranks, shape.ranks_per_node, shape.calls, report->seconds, cpu_s,
      usage.ru_maxrss / 1024, static_cast<double>(spool.bytes) / (1 << 20), spool.files,
      static_cast<double>(all.bytes - spool.bytes) / (1 << 20), all.files - spool.files);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: bench_nodes RANKS RANKS_PER_NODE [CALLS_PER_RANK [SAMPLES]]\n");
    return 2;
  }
  const auto number = [&](int i) {
    return static_cast<uint32_t>(std::strtoul(argv[i], nullptr, 10));
  };
  const Shape shape{number(1), number(2), argc > 3 ? number(3) : 16, argc > 4 ? number(4) : 0};
  if (shape.ranks == 0 || shape.ranks_per_node == 0) return 2;
  const test::TemporaryFolder job;
  write_spools(job.path(), shape);
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    const int code = assemble_and_report(job.path(), shape);
    std::fflush(stdout);
    _exit(code);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
