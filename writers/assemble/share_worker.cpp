// One share of an assembly, step by step (shares.h).

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/file.h"
#include "core/base/lease.h"
#include "core/base/owner.h"
#include "core/base/sync_files.h"
#include "core/spool/files.h"
#include "writers/assemble/assemble.h"
#include "writers/assemble/share_crew.h"
#include "writers/assemble/share_state.h"
#include "writers/share/files.h"

namespace aon::writers {
namespace {

namespace fs = std::filesystem;
using share::FileWriter;

constexpr uint64_t kLooksPerLease = 5;  ///< at the folder, for one at the combiner's lease
constexpr long kFirstPauseNs = 10'000'000;
constexpr long kLongestPauseNs = 900'000'000;  ///< of a thousand nodes, on one file system

class ShareWorker {
 public:
  ShareWorker(const JobModel& parts, const SharePlan& plan, uint32_t share, fs::path work,
              const FileWaiter& wait, const std::function<void()>& beat)
      : parts_(parts),
        plan_(plan),
        share_(share),
        work_(std::move(work)),
        wait_(wait),
        beat_(beat),
        is_own_(plan.map.groups_of(share)) {}

  Status run() {
    Status status = make_folder();
    if (status) status = collect();
    if (status) status = wait_for_all(ends_file);
    if (status) {
      status = match_share(parts_.model, plan_.map, share_, work_, folder_, beat_);
    }
    if (status) status = wait_for_all(waits_file);
    if (status) status = wait_(steps_file(work_));
    return status ? write() : status;
  }

 private:
  /// Of this process alone: another one may do the same share.
  Status make_folder() {
    name_ = "share." + std::to_string(share_) + "." + local_host_name() + "." +
            std::to_string(getpid());
    folder_ = work_ / name_;
    if (mkdir(folder_.c_str(), 0700) == 0) return {};
    return errno_error("create folder", folder_.string(), errno);
  }

  Status wait_for_all(fs::path (*file)(const fs::path&, uint32_t)) {
    for (uint32_t one = 0; one < plan_.map.count; ++one) {
      if (Status status = wait_(file(work_, one)); !status) return status;
    }
    return {};
  }

  /// The first pass.
  Status collect() {
    std::vector<WriterSlot> writers;
    auto waits = make_wait_share(folder_, plan_.map, beat_);
    WaitShare* ends = waits.get();
    writers.push_back({"waits", std::move(waits), {}, false});
    auto finder = make_step_finder();
    StepFinder* steps = finder.get();
    writers.push_back({"steps", std::move(finder), {}, false});
    Result<FileWriter> file = FileWriter::create(first_file(work_, share_));
    if (!file) return file.error();
    EventPass pass(parts_, writers, beat_, EventPass::kWithoutDevices);
    Status status = pass.run_groups(is_own_, [&](uint32_t group) {
      StateOut out;
      Status saved = steps->save(&out);
      return saved ? file->add(group, out.bytes()) : saved;
    });
    for (const WriterSlot& slot : writers) {
      if (status) status = slot.status;
    }
    if (status) status = ends->write(work_, share_);
    return status ? file->finish() : status;
  }

  /// The second pass.
  Status write() {
    Result<std::unique_ptr<WaitAnalysis>> waits =
        make_share_waits(plan_.map, share_, work_, folder_, beat_);
    if (!waits) return waits.error();
    StepPlan steps;
    Status status = read_steps(work_, parts_.model, &steps);
    if (!status) return status;
    Result<FileWriter> file = FileWriter::create(second_file(work_, share_));
    if (!file) return file.error();
    ShareResult result;
    result.folder = name_;
    result.wait_rows = (*waits)->summary()->rows;
    std::vector<WriterSlot> writers = make_share_writers(
        folder_, plan_.names[share_], plan_.writers, waits->get(), std::move(steps));
    EventPass pass(parts_, writers, beat_, plan_.writers.device_bytes);
    status = pass.run_groups(is_own_,
                             [&](uint32_t group) { return save_writers(&writers, group, &*file); });
    if (!status) return status;
    result.outcome = pass.outcome();
    result.tallies = pass.tallies();
    result.left_out = pass.left_out_spans();
    for (const WriterSlot& slot : writers)
      result.failures.push_back(slot.status ? "" : slot.status.error().message);
    writers.clear();  // closes their files
    // The combiner's node cannot sync what this one has written.
    if (status = sync_tree(folder_); !status) return status;
    StateOut out;
    save_result(&out, parts_.model, result);
    status = file->add(kWholeShare, out.bytes());
    return status ? file->finish() : status;
  }

  const JobModel& parts_;
  const SharePlan& plan_;
  uint32_t share_;
  fs::path work_;
  const FileWaiter& wait_;
  const std::function<void()>& beat_;
  std::vector<bool> is_own_;
  std::string name_;
  fs::path folder_;
};

}  // namespace

Status work_on_share(const JobModel& parts, const SharePlan& plan, uint32_t share,
                     const fs::path& work, const FileWaiter& wait,
                     const std::function<void()>& beat) {
  return ShareWorker(parts, plan, share, work, wait, beat).run();
}

Status join_assembly(const fs::path& folder, const std::string& node) {
  const fs::path shares = folder / spool::kSharesFolder;
  if (!is_own_folder(shares.string())) return {};
  Result<SharePlan> plan = read_plan(shares);
  if (!plan) return plan.error();
  const auto own = std::find(plan->names.begin(), plan->names.end(), node);
  if (own == plan->names.end()) return {};
  const auto share = static_cast<uint32_t>(own - plan->names.begin());
  const fs::path work = shares / plan->folder;
  const std::string lease = (folder / "assemble.lease").string();
  uint64_t looks = 0;
  const ShareBeat beat(work, share, [&] {
    if (!is_own_folder(work.string())) return true;
    if (++looks % kLooksPerLease != 0) return false;
    const std::optional<LeaseOwner> owner = read_lease(lease);
    return !owner || !owner->is_alive;
  });
  Result<std::unique_ptr<JobModel>> parts =
      build_model(folder, plan->otf2_locations, {}, /*has_call_paths=*/false);
  if (!parts) return parts.error();
  Model& model = (*parts)->model;
  if (model_fingerprint(**parts) != plan->fingerprint)
    return Error{Code::kInvalid, "the job's definitions look different on this node"};
  model.archive_start_ns = plan->archive_start_ns;
  Status status = read_call_paths(shares, &model);
  if (!status) return status;
  const FileWaiter wait = [](const fs::path& path) {
    long pause_ns = kFirstPauseNs;
    while (!is_there(path)) {
      const timespec time{0, pause_ns};
      nanosleep(&time, nullptr);
      pause_ns = std::min(pause_ns * 2, kLongestPauseNs);
    }
    return Status();
  };
  return work_on_share(**parts, *plan, share, work, wait, [] {});
}

}  // namespace aon::writers
