#include "writers/assemble/share_crew.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/base/file.h"
#include "core/base/fork_alone.h"
#include "core/base/lease.h"
#include "core/base/log.h"
#include "core/base/unique_fd.h"

namespace aon::writers {
namespace {

namespace fs = std::filesystem;
constexpr std::chrono::milliseconds kListenEvery{500};
constexpr size_t kRemotesPerListen = 250;  ///< of more, each is looked at less often
constexpr long kFirstPauseNs = 1'000'000;
constexpr long kLongestPauseNs = 50'000'000;

fs::path alive_file(const fs::path& folder, uint32_t share) {
  return folder / ("alive." + std::to_string(share));
}

bool can_open(const fs::path& path, int flags) {
  return UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC | flags)).get() >= 0;
}

/// Nothing of the combiner's is undone by an exception here: it is still at work.
int exit_code_of(const ShareCrew::Work& work, uint32_t share) noexcept {
  try {
    const Status status = work(share);
    if (!status) AON_LOG_WARNING("share %u: %s", share, status.error().message.c_str());
    return status ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (...) {
    return EXIT_FAILURE;
  }
}

void pause(long ns) {
  const timespec time{0, ns};
  nanosleep(&time, nullptr);
}

}  // namespace

bool is_there(const fs::path& path) {
  if (can_open(path, O_NOFOLLOW)) return true;
  return can_open(path.parent_path(), O_DIRECTORY) && can_open(path, O_NOFOLLOW);
}

ShareCrew::~ShareCrew() {
  for (const auto& [pid, share] : children_) kill(pid, SIGKILL);
  for (const auto& [pid, share] : children_) {
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

Status ShareCrew::start(uint32_t share) {
  const pid_t parent = getpid();
  const pid_t pid = fork_alone();
  if (pid < 0) return errno_error("start", "a process for a share", errno);
  if (pid != 0) {
    children_.emplace(pid, share);
    return {};
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(EXIT_FAILURE);
  _exit(exit_code_of(work_, share));
}

void ShareCrew::expect(uint32_t share, fs::path last_file) {
  remotes_[share] = {Clock::now(), "", std::move(last_file)};
}

Status ShareCrew::reap() {
  for (auto child = children_.begin(); child != children_.end();) {
    int how = 0;
    if (waitpid(child->first, &how, WNOHANG) != child->first) {
      ++child;
      continue;
    }
    const uint32_t share = child->second;
    child = children_.erase(child);
    if (!WIFEXITED(how) || WEXITSTATUS(how) != EXIT_SUCCESS)
      return Error{Code::kIo, "the process of share " + std::to_string(share) + " failed"};
  }
  return {};
}

Status ShareCrew::listen() {
  const Clock::time_point now = Clock::now();
  if (now - listened_ < kListenEvery * (1 + remotes_.size() / kRemotesPerListen)) return {};
  listened_ = now;
  static_cast<void>(can_open(folder_, O_DIRECTORY));
  std::vector<uint32_t> silent;
  for (auto& [share, remote] : remotes_) {
    const Result<std::string> words = read_text_file(alive_file(folder_, share).string());
    if (words && *words != remote.last_words) {
      remote.heard = now;
      remote.last_words = *words;
    }
    const int patience_s = remote.last_words.empty() ? begin_s_ : kLeaseDeadSeconds;
    if (now - remote.heard > std::chrono::seconds(patience_s)) silent.push_back(share);
  }
  // Who is done says nothing any more.
  std::erase_if(silent, [this](uint32_t share) {
    const bool is_done = is_there(remotes_[share].last_file);
    if (is_done) remotes_.erase(share);
    return is_done;
  });
  replaced_count_ += silent.size();
  if (replaced_count_ > kMostReplaced)
    return Error{Code::kUnavailable, std::to_string(replaced_count_) + " nodes are silent"};
  for (const uint32_t share : silent) {
    remotes_.erase(share);
    if (Status status = start(share); !status) return status;
  }
  return {};
}

Status ShareCrew::wait_for(const fs::path& path) {
  long pause_ns = kFirstPauseNs;
  while (!is_there(path)) {
    Status status = reap();
    if (status) status = listen();
    if (!status) return status;
    beat_();
    pause(pause_ns);
    pause_ns = std::min(pause_ns * 2, kLongestPauseNs);
  }
  return {};
}

ShareBeat::ShareBeat(fs::path folder, uint32_t share, std::function<bool()> is_over)
    : path_(alive_file(folder, share)), is_over_(std::move(is_over)) {
  tell();
  thread_.emplace(std::chrono::seconds(kLeaseBeatSeconds), [this] {
    if (is_over_()) _exit(EXIT_FAILURE);
    tell();
  });
}

void ShareBeat::tell() {
  const std::string words =
      local_host_name() + " " + std::to_string(getpid()) + " " + std::to_string(++count_) + "\n";
  Result<UniqueFd> file =
      open_file(path_.string(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
  if (file) static_cast<void>(write_all(file->get(), words.data(), words.size()));
}

}  // namespace aon::writers
