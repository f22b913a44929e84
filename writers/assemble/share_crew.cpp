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

#include "core/base/file.h"
#include "core/base/lease.h"
#include "core/base/log.h"

namespace aon::writers {
namespace {

namespace fs = std::filesystem;
constexpr std::chrono::milliseconds kListenEvery{500};
constexpr long kFirstPauseNs = 1'000'000;
constexpr long kLongestPauseNs = 50'000'000;

fs::path alive_file(const fs::path& folder, uint32_t share) {
  return folder / ("alive." + std::to_string(share));
}

void pause(long ns) {
  const timespec time{0, ns};
  nanosleep(&time, nullptr);
}

}  // namespace

bool is_there(const fs::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  close(fd);
  return true;
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
  const pid_t pid = fork();
  if (pid < 0) return errno_error("start", "a process for a share", errno);
  if (pid != 0) {
    children_.emplace(pid, share);
    return {};
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(EXIT_FAILURE);
  const Status status = work_(share);
  if (!status) AON_LOG_WARNING("share %u: %s", share, status.error().message.c_str());
  _exit(status ? EXIT_SUCCESS : EXIT_FAILURE);
}

void ShareCrew::expect(uint32_t share) { remotes_[share] = {Clock::now(), ""}; }

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
  if (now - listened_ < kListenEvery) return {};
  listened_ = now;
  std::vector<uint32_t> silent;
  for (auto& [share, remote] : remotes_) {
    const Result<std::string> words = read_text_file(alive_file(folder_, share).string());
    if (words && *words != remote.last_words) remote = {now, *words};
    const int patience_s = remote.last_words.empty() ? begin_s_ : kLeaseDeadSeconds;
    if (now - remote.heard > std::chrono::seconds(patience_s)) silent.push_back(share);
  }
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

ShareBeat::ShareBeat(const fs::path& folder, uint32_t share) : path_(alive_file(folder, share)) {}

void ShareBeat::operator()() {
  const auto now = std::chrono::steady_clock::now();
  if (count_ != 0 && now - last_ < std::chrono::seconds(kLeaseBeatSeconds)) return;
  last_ = now;
  const std::string words =
      local_host_name() + " " + std::to_string(getpid()) + " " + std::to_string(++count_) + "\n";
  Result<UniqueFd> file =
      open_file(path_.string(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
  if (file) (void)write_all(file->get(), words.data(), words.size());
}

}  // namespace aon::writers
