#include "writers/assemble/combine.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "core/base/file.h"
#include "core/spool/files.h"
#include "writers/assemble/clocks.h"
#include "writers/assemble/share_crew.h"
#include "writers/assemble/share_state.h"
#include "writers/otf2/archive.h"
#include "writers/share/files.h"

namespace aon::writers {
namespace {

namespace fs = std::filesystem;
using share::FileReader;

/// DIR/.assemble-shares, as long as it lives.
class WorkFolder {
 public:
  static Result<WorkFolder> create(const fs::path& job) {
    fs::path path = job / spool::kSharesFolder;
    if (mkdir(path.c_str(), 0700) == 0) return WorkFolder(std::move(path));
    return errno_error("create folder", path.string(), errno);
  }
  WorkFolder(WorkFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  WorkFolder& operator=(WorkFolder&&) = delete;
  ~WorkFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  explicit WorkFolder(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};

class Combiner {
 public:
  Combiner(JobModel* parts, const SharePlan& plan, const CombineOptions& options,
           const fs::path& work, Passed* passed)
      : parts_(parts), plan_(plan), options_(options), work_(work), passed_(passed) {}

  Status run() {
    Status status = write_plan(work_, plan_, parts_->model);
    if (!status) return status;
    ShareCrew crew(
        work_, [this](uint32_t share) { return work_on(share); }, options_.beat);
    for (uint32_t share = 0; share < plan_.map.count; ++share) {
      const bool is_elsewhere =
          share < options_.is_elsewhere.size() && options_.is_elsewhere[share];
      if (is_elsewhere) {
        crew.expect(share);
      } else if (status) {
        status = crew.start(share);
      }
    }
    if (status) status = wait_for_all(&crew, first_file);
    if (status) status = agree_on_steps();
    if (status) status = wait_for_all(&crew, waits_file);
    if (status) status = sum_up_waits();
    if (status) status = wait_for_all(&crew, second_file);
    passed_->share_count = plan_.map.count;
    passed_->replaced_count = static_cast<uint32_t>(crew.replaced_count());
    if (status) status = open_results();
    return status ? make_result() : status;
  }

 private:
  /// In a child.
  Status work_on(uint32_t share) const {
    const FileWaiter wait = [](const fs::path& path) {
      while (!is_there(path)) {
        const timespec time{0, 5'000'000};
        nanosleep(&time, nullptr);
      }
      return Status();
    };
    return work_on_share(*parts_, plan_, share, work_, wait, [] {});
  }

  Status wait_for_all(ShareCrew* crew, fs::path (*file)(const fs::path&, uint32_t)) const {
    for (uint32_t share = 0; share < plan_.map.count; ++share) {
      if (Status status = crew->wait_for(file(work_, share)); !status) return status;
    }
    return {};
  }

  /// Opens the same file of each share.
  Result<std::vector<FileReader>> open_all(fs::path (*file)(const fs::path&, uint32_t)) const {
    std::vector<FileReader> files;
    for (uint32_t share = 0; share < plan_.map.count; ++share) {
      Result<FileReader> one = FileReader::open(file(work_, share));
      if (!one) return one.error();
      files.push_back(std::move(*one));
    }
    return files;
  }

  Status agree_on_steps() {
    Result<std::vector<FileReader>> files = open_all(first_file);
    if (!files) return files.error();
    const std::unique_ptr<StepFinder> finder = make_step_finder();
    Status status = finder->begin(parts_->model);
    for (size_t group = 0; status && group < plan_.map.of_group.size(); ++group) {
      options_.beat();
      status = (*files)[plan_.map.of_group[group]].read(group, [&](std::span<const char> bytes) {
        StateIn in(bytes);
        return finder->load(&in);
      });
    }
    if (status) status = finder->finish({});
    if (!status) return status;
    steps_ = finder->plan();
    return write_steps(work_, steps_);
  }

  Status sum_up_waits() {
    Result<WaitSummary> summary = load_wait_summary(plan_.map, work_);
    if (!summary) return summary.error();
    waits_ = std::move(*summary);
    passed_->remarks = cover_violations(waits_.clock_violations, &parts_->model);
    return {};
  }

  /// What is about whole shares.
  Status open_results() {
    Result<std::vector<FileReader>> files = open_all(second_file);
    if (!files) return files.error();
    files_ = std::move(*files);
    for (const FileReader& file : files_) {
      ShareResult result;
      Status status = file.read(kWholeShare, [&](std::span<const char> bytes) {
        StateIn in(bytes);
        return load_result(&in, parts_->model, &result);
      });
      if (!status) return status;
      passed_->left_out_device_count += result.left_out_device_count;
      waits_.rows.insert(waits_.rows.end(), result.wait_rows.begin(), result.wait_rows.end());
      results_.push_back(std::move(result));
    }
    std::sort(waits_.rows.begin(), waits_.rows.end(), [](const WaitRow& a, const WaitRow& b) {
      return std::tie(a.location, a.region, a.kind) < std::tie(b.location, b.region, b.kind);
    });
    return {};
  }

  Status make_result() {
    passed_->waits = make_loaded_waits(std::move(waits_));
    passed_->writers = make_writers(options_.staging, plan_.writers, passed_->waits.get(),
                                    std::move(steps_), &passed_->collectors);
    note_failures();
    for_each_writer([&](Writer* writer) { return writer->begin(parts_->model); });
    for (size_t group = 0; group < plan_.map.of_group.size(); ++group) {
      options_.beat();
      Status status =
          files_[plan_.map.of_group[group]].read(group, [&](std::span<const char> bytes) {
            StateIn in(bytes);
            return load_writers(&in, &passed_->writers);
          });
      if (!status) return status;
    }
    Status status = take_files();
    if (status) status = take_counts();
    if (!status) return status;
    passed_->outcome.communication_complete =
        is_complete(parts_->model, passed_->outcome, passed_->tallies);
    for_each_writer([&](Writer* writer) { return writer->finish(passed_->outcome); });
    return {};
  }

  /// What a writer of one share could not write is missing in the whole.
  void note_failures() {
    for (size_t share = 0; share < results_.size(); ++share) {
      const std::vector<std::string>& failures = results_[share].failures;
      for (size_t i = 0; i < std::min(failures.size(), passed_->writers.size()); ++i) {
        Status& status = passed_->writers[i].status;
        if (status && !failures[i].empty())
          status = Error{Code::kIo, plan_.names[share] + ": " + failures[i]};
      }
    }
  }

  void for_each_writer(const std::function<Status(Writer*)>& action) {
    for (WriterSlot& slot : passed_->writers) {
      if (slot.status) slot.status = action(slot.writer.get());
    }
  }

  /// The files that the shares have written in place.
  Status take_files() {
    for (const ShareResult& result : results_) {
      options_.beat();
      const fs::path from = work_ / result.folder;
      Status status = otf2::take_event_files(from, options_.staging);
      if (status) status = otf2::take_event_files(from / "samples", options_.staging / "samples");
      if (status) status = take_series(from / "series");
      if (!status) return status;
    }
    return {};
  }

  Status take_series(const fs::path& from) const {
    std::error_code error;
    if (!fs::exists(from, error)) return {};
    const fs::path to = options_.staging / "series";
    fs::create_directory(to, error);
    for (const fs::directory_entry& entry : fs::directory_iterator(from, error)) {
      fs::rename(entry.path(), to / entry.path().filename(), error);
      if (error) return errno_error("rename", entry.path().string(), error.value());
    }
    return {};
  }

  /// Each location was gone through once.
  Status take_counts() {
    std::vector<std::optional<LocationTally>> tallies(parts_->model.locations.size());
    for (const ShareResult& result : results_) {
      passed_->outcome = passed_->outcome + result.outcome;
      for (const LocationTally& tally : result.tallies)
        tallies[static_cast<size_t>(tally.location - parts_->model.locations.data())] = tally;
    }
    for (const std::optional<LocationTally>& tally : tallies) {
      if (!tally) return Error{Code::kDamaged, "a location is in no share"};
      passed_->tallies.push_back(*tally);
    }
    return {};
  }

  JobModel* parts_;
  const SharePlan& plan_;
  const CombineOptions& options_;
  fs::path work_;
  Passed* passed_;
  StepPlan steps_;
  WaitSummary waits_;
  std::vector<FileReader> files_;
  std::vector<ShareResult> results_;
};

}  // namespace

Status combine_shares(JobModel* parts, const SharePlan& plan, const CombineOptions& options,
                      Passed* passed) {
  Result<WorkFolder> work = WorkFolder::create(parts->job.folder);
  if (!work) return work.error();
  return Combiner(parts, plan, options, work->path(), passed).run();
}

}  // namespace aon::writers
