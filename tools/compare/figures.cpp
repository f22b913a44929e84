#include "tools/compare/figures.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "tools/json.h"
#include "tools/ledger_summary.h"
#include "writers/hdf5/h5.h"
#include "writers/hdf5/read.h"

namespace aon::tools::compare {
namespace {

namespace hdf5 = writers::hdf5;
using Json = nlohmann::json;

constexpr double kNotTold = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kLeastToWarmUp = 10;  ///< of fewer steps none is left out

double number_of(const Json& object, const char* key, double otherwise = 0) {
  const Json& value = member(object, key);
  return value.is_number() ? value.get<double>() : otherwise;
}

void read_ledger_into(const Json& ledger, Job* job) {
  job->seconds = job_seconds(ledger);
  if (job->seconds < 0) job->seconds = kNotTold;
  job->cpu_s = number_of(member(ledger, "overhead"), "ranks_cpu_s", kNotTold);
  const Json& complete = member(member(ledger, "job"), "complete");
  job->is_complete = complete.is_boolean() && complete.get<bool>();
  std::set<std::string> without_rank;
  for (const Json& rank : member(ledger, "ranks")) {
    job->lost_records += number_of(rank, "lost");
    const Json& number = member(rank, "rank");
    const bool is_rank = number.is_number_integer();
    if (is_rank) job->ranks[number.get<int64_t>()] = text_of(rank, "node");
    const std::string program = text_of(rank, "program");
    if (!program.empty()) (is_rank ? job->programs : without_rank).insert(program);
  }
  if (job->ranks.empty()) job->programs = std::move(without_rank);  // shells of ranks are no matter
  const Json& steps = member(ledger, "steps");
  job->step_source = text_of(steps, "source");
  for (const Json& loop : member(steps, "loops")) {
    job->loops.emplace_back();
    job->loops.back().name = text_of(loop, "name");
    job->loops.back().count = number_of(loop, "count");
    job->loops.back().certainty = number_of(loop, "matched", 1) * number_of(loop, "agreement", 1);
  }
}

/// Whether `path`, with at most one '/', is there.
bool has_table(hid_t file, const std::string& path) {
  const size_t slash = path.find('/');
  return (slash == std::string::npos || hdf5::exists(file, path.substr(0, slash))) &&
         hdf5::exists(file, path);
}

[[noreturn]] void refuse(const char* group) {
  throw hdf5::H5Error(std::string(group) + ": columns that do not belong together");
}

/// Columns of one group, all as long as the first.
class Columns {
 public:
  Columns(hid_t file, const char* group) : file_(file), group_(group) {}
  std::vector<int64_t> integers(const char* name) {
    return checked(hdf5::read_integers(file_, path(name)));
  }
  std::vector<std::string> texts(const char* name) {
    return checked(hdf5::read_texts(file_, path(name)));
  }

 private:
  std::string path(const char* name) const { return std::string(group_) + "/" + name; }
  template <class T>
  std::vector<T> checked(std::vector<T> column) {
    if (!is_known_) size_ = column.size();
    is_known_ = true;
    if (column.size() != size_) refuse(group_);
    return column;
  }

  hid_t file_;
  const char* group_;
  bool is_known_ = false;
  size_t size_ = 0;
};

struct StepColumns {
  std::vector<int64_t> process, rank, loop, number, duration, mpi, computing, waiting;
};

double part_of(const StepColumns& columns, Part part, size_t row) {
  const auto value = [row](const std::vector<int64_t>& column) {
    return static_cast<double>(column[row]);
  };
  switch (part) {
    case Part::kDuration:
      return value(columns.duration);
    case Part::kComputing:
      return value(columns.computing);
    case Part::kWaiting:
      return value(columns.waiting);
    case Part::kOtherMpi:
      return value(columns.mpi) - value(columns.waiting);
  }
  return 0;
}

/// Rows of one process in one loop.
using Rows = std::vector<size_t>;

/// By how much the numbers of neighbouring rows differ in the loop's middle, where the rows are
/// fewest and a quarter of all or more. Wider differences are of steps that were lost, or that the
/// program does not have.
int64_t usual_stride(std::vector<int64_t> strides) {
  constexpr double kOfTheMiddle = 0.9;
  if (strides.empty()) return 1;
  const auto at = strides.begin() + static_cast<std::ptrdiff_t>(
                                        kOfTheMiddle * static_cast<double>(strides.size() - 1));
  std::nth_element(strides.begin(), at, strides.end());
  return *at;
}

/// Where steps are left out, all rows at the loop's ends and every 2^k-th step between are there:
/// evenly spaced ones of them, the first in each so many numbers. Numbers that do not rise tell
/// nothing of that.
std::optional<Rows> evenly_spaced(const StepColumns& columns, const Rows& rows) {
  std::vector<int64_t> strides;
  for (size_t i = 1; i < rows.size(); ++i) {
    const int64_t before = columns.number[rows[i - 1]];
    const int64_t number = columns.number[rows[i]];
    if (before < 0 || number <= before) return std::nullopt;
    strides.push_back(number - before);
  }
  const int64_t stride = usual_stride(std::move(strides));
  Rows kept;
  int64_t last = -1;
  for (const size_t row : rows) {
    const int64_t place = (columns.number[row] - columns.number[rows.front()]) / stride;
    if (place != last) kept.push_back(row);
    last = place;
  }
  return kept;
}

/// The number of steps that at least half of the processes have.
size_t common_count(const std::map<int64_t, Rows>& processes) {
  std::vector<size_t> counts;
  for (const auto& [process, rows] : processes) counts.push_back(rows.size());
  const auto middle = counts.begin() + static_cast<std::ptrdiff_t>(counts.size() / 2);
  std::nth_element(counts.begin(), middle, counts.end());
  return *middle;
}

/// Means over the processes that have a step, of those behind the first tenth.
void add_series(const StepColumns& columns, const std::map<int64_t, Rows>& processes, Loop* loop) {
  const size_t count = common_count(processes);
  const size_t first = count < kLeastToWarmUp ? 0 : (count + 9) / 10;
  for (size_t part = 0; part < kPartCount; ++part) {
    for (size_t step = first; step < count; ++step) {
      double sum = 0;
      double process_count = 0;
      for (const auto& [process, rows] : processes) {
        if (step >= rows.size()) continue;
        sum += part_of(columns, static_cast<Part>(part), rows[step]);
        ++process_count;
      }
      loop->series[part].push_back(sum / process_count);
    }
  }
  std::map<int64_t, int> owners;  // of spawned worlds each has its rank 0
  for (const auto& [process, rows] : processes) ++owners[columns.rank[rows.front()]];
  for (const auto& [process, rows] : processes) {
    const int64_t rank = columns.rank[rows.front()];
    if (rank < 0 || owners[rank] > 1) continue;
    for (size_t step = first; step < std::min(count, rows.size()); ++step)
      loop->computing[rank].push_back(part_of(columns, Part::kComputing, rows[step]));
  }
}

void read_steps(hid_t file, Job* job) {
  if (job->loops.empty() || !hdf5::exists(file, "steps")) return;
  Columns of(file, "steps");
  const StepColumns columns{of.integers("process"),     of.integers("rank"),
                            of.integers("loop"),        of.integers("step"),
                            of.integers("duration_ns"), of.integers("mpi_ns"),
                            of.integers("compute_ns"),  of.integers("wait_ns")};
  const hdf5::Handle group = hdf5::open_group(file, "steps");
  const bool is_thinned = hdf5::read_integer_attribute(group.get(), "steps_left_out") > 0;
  std::vector<std::map<int64_t, Rows>> loops(job->loops.size());
  for (size_t row = 0; row < columns.loop.size(); ++row) {
    const auto loop = static_cast<size_t>(columns.loop[row]);
    if (loop < loops.size()) loops[loop][columns.process[row]].push_back(row);
  }
  for (size_t i = 0; i < loops.size(); ++i) {
    if (loops[i].empty()) continue;
    bool is_even = true;
    for (auto& [process, rows] : loops[i]) {
      if (!is_thinned) continue;
      std::optional<Rows> even = evenly_spaced(columns, rows);
      is_even = is_even && even.has_value();
      if (even) rows = std::move(*even);
    }
    if (!is_even)
      job->doubts.push_back("of loop '" + job->loops[i].name +
                            "' not all steps are kept, and their numbers do not rise: its first "
                            "and last ones weigh too much");
    add_series(columns, loops[i], &job->loops[i]);
  }
}

void read_regions(hid_t file, Job* job) {
  if (!hdf5::exists(file, "profile") || !hdf5::exists(file, "regions")) return;
  const std::vector<std::string> names = hdf5::read_texts(file, "regions/name");
  Columns of(file, "profile");
  const auto region = of.integers("region");
  const auto time = of.integers("exclusive_ns");
  const auto count = of.integers("count");
  const auto bytes = of.integers("bytes");
  for (size_t row = 0; row < region.size(); ++row) {
    if (static_cast<size_t>(region[row]) >= names.size()) refuse("profile");
    Work& work = job->regions[names[static_cast<size_t>(region[row])]];
    work.time_ns += static_cast<double>(time[row]);
    work.count += static_cast<double>(count[row]);
    work.bytes += static_cast<double>(bytes[row]);
  }
}

/// Processes that have something in one of the tables.
void count_processes(hid_t file, Job* job) {
  std::set<int64_t> processes;
  for (const char* table : {"profile", "steps", "gpu/kernels"}) {
    if (!has_table(file, table)) continue;
    for (const int64_t process : hdf5::read_integers(file, std::string(table) + "/process"))
      processes.insert(process);
  }
  job->process_count = static_cast<double>(processes.size());
}

void read_kernels(hid_t file, Job* job) {
  if (!has_table(file, "gpu/kernels")) return;
  const hdf5::Handle group = hdf5::open_group(file, "gpu/kernels");
  const bool has_joined = H5Aexists(group.get(), "joined") > 0;  // archives of before have none
  if (has_joined && hdf5::read_integer_attribute(group.get(), "joined") > 0)
    job->doubts.push_back(
        "some kernels are '(more kernels)': of those that take least time the sums are of the "
        "processes that tell them apart");
  Columns of(file, "gpu/kernels");
  const auto name = of.texts("name");
  const auto time = of.integers("total_ns");
  const auto count = of.integers("count");
  for (size_t row = 0; row < name.size(); ++row) {
    Work& work = job->kernels[name[row]];
    work.time_ns += static_cast<double>(time[row]);
    work.count += static_cast<double>(count[row]);
  }
}

void read_processors(hid_t file, Job* job) {
  if (!hdf5::exists(file, "topology")) return;
  Columns of(file, "topology");
  const auto type = of.texts("type");
  const auto model = of.texts("model");
  for (size_t row = 0; row < type.size(); ++row) {
    if (type[row] == "Package" && !model[row].empty()) job->processors.insert(model[row]);
  }
}

}  // namespace

Result<Job> read_job(const std::string& dir, const Json& ledger) {
  Job job;
  job.dir = dir;
  read_ledger_into(ledger, &job);
  const Status status = hdf5::guard(dir + "/profile.h5", [&] {
    hdf5::use_library();
    const hdf5::Handle file = hdf5::open_file(dir + "/profile.h5");
    read_steps(file.get(), &job);
    read_regions(file.get(), &job);
    read_kernels(file.get(), &job);
    read_processors(file.get(), &job);
    count_processes(file.get(), &job);
  });
  if (!status) return status.error();
  return job;
}

}  // namespace aon::tools::compare
