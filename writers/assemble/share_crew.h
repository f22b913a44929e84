/// The processes that work on the shares of an assembly, as the combiner sees them: its own
/// children, and on other nodes those of which it only sees the files. Of these each writes
/// alive.I again and again; one that never begins, or goes silent, is replaced by a child.
/// Owner: the combiner.   Thread: one.   Cost: a fork per child; a file looked at every 0.5 s per
/// share elsewhere.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "writers/assemble/beat_thread.h"

namespace aon::writers {

/// Agents that wait look every 4 s at least (core/agent/finish.cpp); what they see of a folder may
/// be 30 s old on network file systems.
constexpr int kBeginSeconds = 40;
constexpr size_t kMostReplaced = 8;

class ShareCrew {
 public:
  using Work = std::function<Status(uint32_t share)>;

  /// `work` is what a child does. `beat` is called while the combiner waits.
  ShareCrew(std::filesystem::path folder, Work work, std::function<void()> beat,
            int begin_s = kBeginSeconds)
      : folder_(std::move(folder)),
        work_(std::move(work)),
        beat_(std::move(beat)),
        begin_s_(begin_s) {}
  ShareCrew(const ShareCrew&) = delete;
  ShareCrew& operator=(const ShareCrew&) = delete;
  /// Ends the children that still work.
  ~ShareCrew();

  /// A child begins with `share`.   Errors: kIo.
  Status start(uint32_t share);
  /// Somebody elsewhere is to do it, and is done when `last_file` is there.
  void expect(uint32_t share, std::filesystem::path last_file);

  /// Until `path`, a file of somebody's share, is there.
  /// Errors: kIo, when a child failed; kUnavailable, when too many are silent.
  Status wait_for(const std::filesystem::path& path);

  size_t replaced_count() const { return replaced_count_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Remote {
    Clock::time_point heard;
    std::string last_words;
    std::filesystem::path last_file;
  };

  Status reap();
  Status listen();

  std::filesystem::path folder_;
  Work work_;
  std::function<void()> beat_;
  int begin_s_;
  std::map<pid_t, uint32_t> children_;
  std::map<uint32_t, Remote> remotes_;
  Clock::time_point listened_;
  size_t replaced_count_ = 0;
};

/// Writes alive.I every kLeaseBeatSeconds, whatever else the process does. When `is_over` the
/// process ends: nobody waits for its share any more.
/// Owner: who works on a share elsewhere.   Thread: one of its own (beat_thread.h).
class ShareBeat {
 public:
  ShareBeat(std::filesystem::path folder, uint32_t share, std::function<bool()> is_over);

 private:
  void tell();

  std::filesystem::path path_;
  std::function<bool()> is_over_;
  uint64_t count_ = 0;
  std::optional<BeatThread> thread_;
};

/// Whether a file is there. Network file systems keep in mind that it was not, until its folder is
/// opened again.
bool is_there(const std::filesystem::path& path);

}  // namespace aon::writers
