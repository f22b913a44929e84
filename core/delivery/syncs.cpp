#include "core/delivery/syncs.h"

#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/sync_files.h"
#include "core/delivery/names.h"

namespace aon::delivery {
namespace {

std::vector<std::string> still_there(int folder, const std::vector<std::string>& names) {
  std::vector<std::string> left;
  for (const std::string& name : names) {
    const bool is_there = faccessat(folder, name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    if (is_there || !is_ring_name(name)) left.push_back(name);
  }
  return left;
}

}  // namespace

void Syncs::add(const std::string& mark, std::shared_ptr<const UniqueFd> folder,
                std::vector<std::string> names) {
  waiting_.push_back({mark, std::move(folder), std::move(names)});
}

std::vector<Synced> Syncs::take_done(std::chrono::milliseconds patience) {
  if (!running_.valid() && !waiting_.empty()) begin();
  if (!running_.valid() || running_.wait_for(patience) != std::future_status::ready) return {};
  return running_.get();
}

void Syncs::begin() {
  const auto jobs = std::make_shared<std::vector<Job>>(std::exchange(waiting_, {}));
  const auto task =
      std::make_shared<std::packaged_task<std::vector<Synced>()>>([jobs] { return run(*jobs); });
  running_ = task->get_future();
  try {
    std::thread([task] { (*task)(); }).detach();
  } catch (const std::system_error&) {
    (*task)();
  }
}

/// Of many each would wait for the files of those before it.
std::vector<Synced> Syncs::run(const std::vector<Job>& jobs) {
  std::vector<Synced> done;
  size_t file_count = 0;
  for (const Job& job : jobs) file_count += job.names.size();
  for (const Job& job : jobs) {
    if (file_count <= kMostSyncedFiles) {
      const int folder = job.folder->get();
      done.push_back({job.mark, sync_files(folder, still_there(folder, job.names))});
    } else if (done.empty()) {
      done.push_back({job.mark, sync_file_system(job.folder->get())});
    } else {
      done.push_back({job.mark, done.front().status});
    }
  }
  return done;
}

}  // namespace aon::delivery
