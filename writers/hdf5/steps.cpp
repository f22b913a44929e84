#include "writers/hdf5/steps.h"

#include <string>
#include <vector>

#include "writers/hdf5/column.h"

namespace aon::writers::hdf5 {
namespace {

constexpr const char* kParts[kStepPartCount] = {"duration", "mpi", "compute", "wait"};

int64_t rank_of(const Group& group) { return group.rank ? int64_t{*group.rank} : -1; }

const char* source(const StepSummary& summary) {
  if (summary.loops.empty()) return "none found";
  return summary.is_annotated ? "annotated" : "detected";
}

std::vector<std::string> loop_names(const StepSummary& summary) {
  std::vector<std::string> names;
  for (const StepLoop& loop : summary.loops) names.push_back(loop.name);
  return names;
}

void write_rows(hid_t file, const Model& model, const StepSummary& summary,
                std::span<const uint64_t> nccl_caused_ns) {
  Table table(file, "steps", "iterations of the program, by process, loop and time");
  auto& rank = table.add<int64_t>("rank", {"1", "rank in MPI_COMM_WORLD, -1 without"});
  auto& process = table.add<uint32_t>("process", {"1", "row of /ranks"});
  auto& loop = table.add<uint32_t>("loop", {"1", "entry of the attribute loops"});
  auto& step = table.add<int64_t>("step", {"1", "number of the step, -1 unknown"});
  auto& begin = table.add<uint64_t>("begin_ns", {"ns", "begin, nanoseconds since 1970"});
  auto& duration = table.add<uint64_t>("duration_ns", {"ns", "from its begin to its end"});
  auto& mpi = table.add<uint64_t>("mpi_ns", {"ns", "of it in MPI calls"});
  auto& compute = table.add<uint64_t>("compute_ns", {"ns", "of it outside of MPI calls"});
  auto& wait = table.add<uint64_t>("wait_ns", {"ns", "of it waiting for late partners, in MPI"});
  for (const StepRow& row : summary.rows) {
    const auto part = [&row](StepPart which) { return row.part_ns[static_cast<size_t>(which)]; };
    rank.append(rank_of(model.groups[row.group]));
    process.append(row.group);
    loop.append(row.loop);
    step.append(row.number);
    begin.append(row.begin_ns);
    duration.append(part(StepPart::kDuration));
    mpi.append(part(StepPart::kMpi));
    compute.append(part(StepPart::kCompute));
    wait.append(part(StepPart::kWait));
  }
  if (!nccl_caused_ns.empty()) {
    auto& caused = table.add<uint64_t>(
        "nccl_caused_ns", {"ns",
                           "what other GPUs waited for this process in operations of NCCL that it "
                           "called in the step and came late to"});
    for (const uint64_t caused_ns : nccl_caused_ns) caused.append(caused_ns);
  }
  table.finish();
  const hid_t group = table.group();
  set_attribute(group, "source", source(summary));
  set_attribute(group, "confidence", summary.confidence);
  if (!summary.loops.empty()) set_attribute(group, "loops", loop_names(summary));
  set_attribute(group, "steps", static_cast<int64_t>(summary.step_count));
  set_attribute(group, "steps_left_out",
                static_cast<int64_t>(summary.step_count - summary.rows.size()));
}

/// Six columns of one part of the steps.
struct FigureColumns {
  FigureColumns(Table* table, const std::string& part)
      : mean(add<double>(table, part, "mean")),
        deviation(add<double>(table, part, "deviation")),
        least(add<uint64_t>(table, part, "min")),
        median(add<uint64_t>(table, part, "median")),
        p95(add<uint64_t>(table, part, "p95")),
        most(add<uint64_t>(table, part, "max")) {}

  void append(const StepFigures& figures) {
    mean.append(figures.mean_ns);
    deviation.append(figures.deviation_ns);
    least.append(figures.min_ns);
    median.append(figures.median_ns);
    p95.append(figures.p95_ns);
    most.append(figures.max_ns);
  }

  template <class T>
  static Column<T>& add(Table* table, const std::string& part, const std::string& figure) {
    const std::string text = figure + " of " + part + " of the steps";
    return table->add<T>((part + "_" + figure + "_ns").c_str(), {"ns", text.c_str()});
  }

  Column<double>& mean;
  Column<double>& deviation;
  Column<uint64_t>& least;
  Column<uint64_t>& median;
  Column<uint64_t>& p95;
  Column<uint64_t>& most;
};

void write_statistics(hid_t file, const Model& model, const StepSummary& summary) {
  Table table(file, "step_statistics", "figures over all steps, by process and loop");
  auto& rank = table.add<int64_t>("rank", {"1", "rank in MPI_COMM_WORLD, -1 without"});
  auto& process = table.add<uint32_t>("process", {"1", "row of /ranks"});
  auto& loop = table.add<uint32_t>("loop", {"1", "entry of the attribute loops of /steps"});
  auto& count = table.add<uint64_t>("count", {"1", "steps"});
  auto& matched = table.add<uint64_t>("matched_count", {"1", "steps that are like the pattern"});
  std::vector<FigureColumns> parts;
  for (const char* part : kParts) parts.emplace_back(&table, part);
  for (const StepStatistics& row : summary.statistics) {
    rank.append(rank_of(model.groups[row.group]));
    process.append(row.group);
    loop.append(row.loop);
    count.append(row.count);
    matched.append(row.matched_count);
    for (size_t i = 0; i < kStepPartCount; ++i) parts[i].append(row.parts[i]);
  }
  table.finish();
}

}  // namespace

void write_steps(hid_t file, const Model& model, const StepSummary& summary,
                 std::span<const uint64_t> nccl_caused_ns) {
  write_rows(file, model, summary, nccl_caused_ns);
  write_statistics(file, model, summary);
}

}  // namespace aon::writers::hdf5
