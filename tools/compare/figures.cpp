#include "tools/compare/figures.h"

#include <algorithm>
#include <utility>

#include "tools/ledger_summary.h"
#include "writers/hdf5/h5.h"
#include "writers/hdf5/read.h"

namespace aon::tools::compare {
namespace {

namespace hdf5 = writers::hdf5;
using Json = nlohmann::json;

const Json& member(const Json& object, const char* key) {
  static const Json kNothing;
  if (!object.is_object()) return kNothing;
  const auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

double number_of(const Json& object, const char* key) {
  const Json& value = member(object, key);
  return value.is_number() ? value.get<double>() : 0;
}

std::string text_of(const Json& object, const char* key) {
  const Json& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

void read_ledger_into(const Json& ledger, Job* job) {
  job->seconds = job_seconds(ledger);
  job->cpu_s = number_of(member(ledger, "overhead"), "ranks_cpu_s");
  const Json& complete = member(member(ledger, "job"), "complete");
  job->is_complete = complete.is_boolean() && complete.get<bool>();
  for (const Json& rank : member(ledger, "ranks")) {
    job->lost_records += number_of(rank, "lost");
    const Json& number = member(rank, "rank");
    if (!number.is_number_integer()) continue;
    job->ranks[number.get<int64_t>()] = text_of(rank, "node");
    job->programs.insert(text_of(rank, "program"));
  }
  const Json& steps = member(ledger, "steps");
  job->step_source = text_of(steps, "source");
  for (const Json& loop : member(steps, "loops")) {
    job->loops.emplace_back();
    job->loops.back().name = text_of(loop, "name");
    job->loops.back().count = number_of(loop, "count");
  }
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

/// Means over the ranks, as far as each has steps.
struct Mean {
  std::vector<double> sums;
  std::vector<double> counts;

  void add(size_t at, double value) {
    if (at >= sums.size()) {
      sums.resize(at + 1);
      counts.resize(at + 1);
    }
    sums[at] += value;
    ++counts[at];
  }
  std::vector<double> values() && {
    for (size_t i = 0; i < sums.size(); ++i) sums[i] /= counts[i];
    return std::move(sums);
  }
};

struct StepColumns {
  std::vector<int64_t> process, rank, loop, duration, mpi, computing, waiting;
};

double part_of(const StepColumns& columns, Part part, size_t row) {
  switch (part) {
    case Part::kDuration:
      return static_cast<double>(columns.duration[row]);
    case Part::kComputing:
      return static_cast<double>(columns.computing[row]);
    case Part::kWaiting:
      return static_cast<double>(columns.waiting[row]);
    case Part::kOtherMpi:
      return static_cast<double>(columns.mpi[row] - columns.waiting[row]);
  }
  return 0;
}

/// Rows of one process and loop: `begin` to `end`.
void add_rows(const StepColumns& columns, size_t begin, size_t end,
              std::array<Mean, kPartCount>* means, Loop* loop) {
  const size_t first = begin + (end - begin + 9) / 10;
  std::vector<double>& computing = loop->computing[columns.rank[begin]];
  for (size_t row = first; row < end; ++row) {
    for (size_t part = 0; part < kPartCount; ++part)
      (*means)[part].add(row - first, part_of(columns, static_cast<Part>(part), row));
    computing.push_back(part_of(columns, Part::kComputing, row));
  }
}

void read_steps(hid_t file, Job* job) {
  if (job->loops.empty() || !hdf5::exists(file, "steps")) return;
  Columns of(file, "steps");
  const StepColumns columns{of.integers("process"), of.integers("rank"),
                            of.integers("loop"),    of.integers("duration_ns"),
                            of.integers("mpi_ns"),  of.integers("compute_ns"),
                            of.integers("wait_ns")};
  std::vector<std::array<Mean, kPartCount>> means(job->loops.size());
  const auto is_with = [&](size_t row, size_t other) {
    return columns.process[row] == columns.process[other] &&
           columns.loop[row] == columns.loop[other];
  };
  for (size_t begin = 0; begin < columns.loop.size();) {
    size_t end = begin;
    while (end < columns.loop.size() && is_with(end, begin)) ++end;
    const auto loop = static_cast<size_t>(columns.loop[begin]);
    if (loop < means.size()) add_rows(columns, begin, end, &means[loop], &job->loops[loop]);
    begin = end;
  }
  for (size_t loop = 0; loop < means.size(); ++loop) {
    for (size_t part = 0; part < kPartCount; ++part)
      job->loops[loop].series[part] = std::move(means[loop][part]).values();
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

void read_kernels(hid_t file, Job* job) {
  if (!hdf5::exists(file, "gpu") || !hdf5::exists(file, "gpu/kernels")) return;
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
  });
  if (!status) return status.error();
  return job;
}

}  // namespace aon::tools::compare
