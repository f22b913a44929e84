#include "writers/assemble/combine.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

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

/// DIR/.assemble-shares with the folder of one assembly, as long as it lives.
class WorkFolder {
 public:
  static Result<WorkFolder> create(const fs::path& job, const std::string& name) {
    WorkFolder folder(job / spool::kSharesFolder, name);
    for (const fs::path& path : {folder.shares_, folder.work_}) {
      if (mkdir(path.c_str(), 0700) == 0) continue;
      const int error_number = errno;
      if (path == folder.shares_) folder.shares_.clear();  // somebody else's
      return errno_error("create folder", path.string(), error_number);
    }
    return folder;
  }
  WorkFolder(WorkFolder&& other) noexcept
      : shares_(std::exchange(other.shares_, {})), work_(std::move(other.work_)) {}
  WorkFolder& operator=(WorkFolder&&) = delete;
  /// Twice: others may write into it until they see that it goes.
  ~WorkFolder() {
    std::error_code ignored;
    if (shares_.empty()) return;
    fs::remove_all(shares_, ignored);
    if (ignored) fs::remove_all(shares_, ignored);
  }
  const fs::path& shares() const { return shares_; }
  const fs::path& work() const { return work_; }

 private:
  WorkFolder(fs::path shares, const std::string& name)
      : shares_(std::move(shares)), work_(shares_ / name) {}
  fs::path shares_;  ///< empty: not ours
  fs::path work_;
};

/// A file of each share is open while the result is made.
void allow_files(uint64_t count) {
  constexpr uint64_t kOthers = 256;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= count + kOthers) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, count + kOthers);
  setrlimit(RLIMIT_NOFILE, &limit);
}

class Combiner {
 public:
  Combiner(JobModel* parts, const SharePlan& plan, const CombineOptions& options,
           const WorkFolder& folder, Passed* passed)
      : parts_(parts),
        plan_(plan),
        options_(options),
        shares_(folder.shares()),
        work_(folder.work()),
        passed_(passed) {}

  Status run() {
    Status status = write_plan(shares_, plan_, parts_->model);
    if (!status) return status;
    ShareCrew crew(
        work_, [this](uint32_t share) { return work_on(share); }, options_.beat);
    for (uint32_t share = 0; share < plan_.map.count; ++share) {
      const bool is_elsewhere =
          share < options_.is_elsewhere.size() && options_.is_elsewhere[share];
      if (is_elsewhere) {
        crew.expect(share, second_file(work_, share));
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
    return {};
  }

  /// What is about whole shares. Their writers have failed here alone: one process may do better.
  Status open_results() {
    passed_->remarks = cover_violations(waits_.clock_violations, &parts_->model);
    Result<std::vector<FileReader>> files = open_all(second_file);
    if (!files) return files.error();
    files_ = std::move(*files);
    for (const FileReader& file : files_) {
      ShareResult result;
      Status status = file.read(kWholeShare, [&](std::span<const char> bytes) {
        StateIn in(bytes);
        return load_result(&in, parts_->model, &result);
      });
      if (status) status = check_writers(result, plan_.names[results_.size()]);
      if (!status) return status;
      passed_->left_out.add(result.left_out);
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
    for_each_writer([&](Writer* writer) { return writer->begin(parts_->model); });
    // What a writer cannot take in is the share's error: then one process tries.
    for (size_t group = 0; group < plan_.map.of_group.size(); ++group) {
      options_.beat();
      Status status = load_writers(files_[plan_.map.of_group[group]], static_cast<uint32_t>(group),
                                   &passed_->writers);
      if (!status) return status;
    }
    Status status = take_files();
    if (status) status = take_counts();
    if (!status) return status;
    take_out_alike(passed_->waits->summary()->alike_failure_count, &passed_->outcome);
    passed_->outcome.communication_complete =
        is_complete(parts_->model, passed_->outcome, passed_->tallies);
    for_each_writer([&](Writer* writer) {
      options_.beat();
      return writer->finish(passed_->outcome);
    });
    return {};
  }

  static Status check_writers(const ShareResult& result, const std::string& name) {
    for (const std::string& failure : result.failures) {
      if (!failure.empty()) return Error{Code::kIo, name + ": " + failure};
    }
    return {};
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
    const fs::path to = options_.staging / "series";
    std::error_code error;
    fs::directory_iterator entries(from, error);
    if (error == std::errc::no_such_file_or_directory) return {};
    std::vector<fs::path> files;  // first all names: the folder changes
    for (; !error && entries != fs::directory_iterator(); entries.increment(error))
      files.push_back(entries->path());
    if (!error) fs::create_directories(to, error);
    for (const fs::path& file : files) {
      if (!error) fs::rename(file, to / file.filename(), error);
    }
    return error ? Status(errno_error("move files of", from.string(), error.value())) : Status();
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
  fs::path shares_;
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
  Result<WorkFolder> folder = WorkFolder::create(parts->job.folder, plan.folder);
  if (!folder) return folder.error();
  allow_files(plan.map.count);
  const std::vector<uint64_t> clock_error_ns = parts->model.clock_error_ns;
  const clock::ClusterClocks cluster = parts->model.cluster;
  Status status = Combiner(parts, plan, options, *folder, passed).run();
  if (!status) {  // as if nothing had been tried
    parts->model.clock_error_ns = clock_error_ns;
    parts->model.cluster = cluster;
  }
  return status;
}

}  // namespace aon::writers
