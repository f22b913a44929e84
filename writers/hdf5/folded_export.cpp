#include "writers/hdf5/folded_export.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "writers/hdf5/h5.h"
#include "writers/hdf5/read.h"

namespace aon::writers {
namespace {

/// ';' separates frames and a space ends the stack.
std::string frame_text(std::string name) {
  for (char& c : name) {
    if (c == ';' || c == '\n') c = ',';
  }
  return name;
}

struct Tables {
  std::vector<std::string> function_names;
  std::vector<int64_t> parents;
  std::vector<int64_t> functions;
  std::vector<int64_t> ranks;
  std::vector<int64_t> processes;
  std::vector<int64_t> paths;
  std::vector<int64_t> counts;
  std::vector<int64_t> periods;
};

Tables read_tables(hid_t file) {
  return {.function_names = hdf5::read_texts(file, "functions/name"),
          .parents = hdf5::read_integers(file, "callpaths/parent"),
          .functions = hdf5::read_integers(file, "callpaths/function"),
          .ranks = hdf5::read_integers(file, "samples/rank"),
          .processes = hdf5::read_integers(file, "samples/process"),
          .paths = hdf5::read_integers(file, "samples/callpath"),
          .counts = hdf5::read_integers(file, "samples/count"),
          .periods = hdf5::read_integers(file, "samples/period")};
}

std::string stack_text(const Tables& tables, int64_t path) {
  std::string text;
  const auto count = static_cast<int64_t>(tables.parents.size());
  for (int64_t at = path; at >= 0 && at < count; at = tables.parents[static_cast<size_t>(at)]) {
    const auto function = static_cast<size_t>(tables.functions[static_cast<size_t>(at)]);
    const std::string name =
        function < tables.function_names.size() ? tables.function_names[function] : "[unknown]";
    text = text.empty() ? frame_text(name) : frame_text(name) + ";" + text;
  }
  return text;
}

/// Columns of equal length, and parents before their children: the file may be anybody's.
bool is_sound(const Tables& tables) {
  if (tables.parents.size() != tables.functions.size()) return false;
  for (const auto* column : {&tables.counts, &tables.periods, &tables.ranks, &tables.processes}) {
    if (column->size() != tables.paths.size()) return false;
  }
  for (size_t i = 0; i < tables.parents.size(); ++i) {
    if (tables.parents[i] >= static_cast<int64_t>(i)) return false;
  }
  return true;
}

/// Of row `i` of the samples.
std::string process_text(const Tables& tables, size_t i) {
  const int64_t rank = tables.ranks[i];
  return rank >= 0 ? "rank " + std::to_string(rank)
                   : "process " + std::to_string(tables.processes[i]);
}

/// Each stack by the time that its samples stand for, which is not the same in all where the rate
/// changed, in samples of the mean time: at one rate they are the samples.
std::map<std::string, int64_t> fold(const Tables& tables, bool by_rank) {
  double count = 0;
  double period = 0;
  for (size_t i = 0; i < tables.paths.size(); ++i) {
    count += static_cast<double>(tables.counts[i]);
    period += static_cast<double>(tables.periods[i]);
  }
  std::map<std::string, double> times;
  for (size_t i = 0; i < tables.paths.size(); ++i) {
    std::string text = stack_text(tables, tables.paths[i]);
    if (by_rank) text = process_text(tables, i) + ";" + text;
    times[text] += static_cast<double>(tables.periods[i]);
  }
  std::map<std::string, int64_t> stacks;
  for (const auto& [text, time] : times)
    stacks[text] = std::max<int64_t>(1, std::llround(time / std::max(period, 1.0) * count));
  return stacks;
}

}  // namespace

Status export_folded(const std::filesystem::path& folder, const std::filesystem::path& output,
                     bool by_rank) {
  std::map<std::string, int64_t> stacks;
  bool has_samples = false;
  const std::filesystem::path profile = folder / "profile.h5";
  Status status = hdf5::guard(profile, [&] {
    hdf5::use_library();
    const hdf5::Handle file = hdf5::open_file(profile);
    has_samples = hdf5::exists(file.get(), "samples");
    if (!has_samples) return;
    const Tables tables = read_tables(file.get());
    if (!is_sound(tables)) throw hdf5::H5Error("its call paths are damaged");
    stacks = fold(tables, by_rank);
    const hdf5::Handle group = hdf5::open_group(file.get(), "samples");
    const int64_t unknown = hdf5::read_integer_attribute(group.get(), "unknown_count");
    if (unknown > 0) stacks["[unknown]"] += unknown;
  });
  if (!status) return status;
  if (!has_samples) {
    return Error{Code::kNotFound, folder.string() + " has no samples; see `aon info " +
                                      folder.string() + "` for what was not collected and why"};
  }
  FILE* file = output == "-" ? stdout : std::fopen(output.c_str(), "we");
  bool is_written = file != nullptr;
  for (auto at = stacks.begin(); is_written && at != stacks.end(); ++at) {
    is_written =
        std::fprintf(file, "%s %lld\n", at->first.c_str(), static_cast<long long>(at->second)) > 0;
  }
  if (file != nullptr && file != stdout) is_written = std::fclose(file) == 0 && is_written;
  if (!is_written) return Error{Code::kIo, "cannot write " + output.string()};
  return {};
}

}  // namespace aon::writers
