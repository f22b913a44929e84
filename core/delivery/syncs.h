/// Syncs what couriers have brought, beside the receiver, which goes on with the others meanwhile:
/// where the application has written much to the same file system it takes minutes.
///
///     add()--> waiting --none runs: all that wait, together--> running --> done
///
/// Thread: one; what runs has a thread of its own.   Cost: that thread; of more than
/// kMostSyncedFiles files as long as the whole file system takes.   Errors: of sync_files(), told
/// with what is done. Where no thread is to be had, the caller waits.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/unique_fd.h"

namespace aon::delivery {

/// The files of one courier outlive a crash of this node, or why not.
struct Synced {
  std::string mark;
  Status status;
};

class Syncs {
 public:
  /// Files of `folder`. A ring that is gone when its turn comes is part of the spool already, under
  /// another name.
  void add(const std::string& mark, std::shared_ptr<const UniqueFd> folder,
           std::vector<std::string> names);

  bool are_any() const { return running_.valid() || !waiting_.empty(); }
  /// What is done, at the latest after `patience`, and lets those begin that wait.
  std::vector<Synced> take_done(std::chrono::milliseconds patience);

 private:
  struct Job {
    std::string mark;
    std::shared_ptr<const UniqueFd> folder;  ///< another descriptor may not be had
    std::vector<std::string> names;
  };

  static std::vector<Synced> run(const std::vector<Job>& jobs);
  void begin();

  std::vector<Job> waiting_;
  std::future<std::vector<Synced>> running_;
};

}  // namespace aon::delivery
