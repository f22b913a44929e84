#include "core/base/lease.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/base/containers.h"
#include "core/base/place_file.h"

namespace aon {
namespace {

/// Reads a small file without following a link; empty when it is not there.
std::string read_small(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return {};
  char buffer[1024];
  const ssize_t count = read(fd, buffer, sizeof(buffer));
  close(fd);
  return count > 0 ? std::string(buffer, static_cast<size_t>(count)) : std::string();
}

/// Name of a file beside `path` that no other process or thread uses.
std::string private_name(const std::string& path) {
  static std::atomic<uint32_t> counter{0};
  return path + "." + host_of_pids() + "." + std::to_string(getpid()) + "." +
         std::to_string(counter.fetch_add(1, std::memory_order_relaxed));
}

Status write_private(const std::string& name, const std::string& text) {
  const int fd = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return Error{Code::kIo, "cannot create " + name + ": " + strerror(errno)};
  const bool is_written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int error_number = errno;
  close(fd);
  if (is_written) return {};
  unlink(name.c_str());
  return Error{Code::kIo, "cannot write " + name + ": " + strerror(error_number)};
}

/// Removes the private files beside `path` of takers that were killed. `path` is our own, made just
/// now: it has the file system's time.
void remove_leftovers(const std::string& path) {
  struct stat now {};
  if (stat(path.c_str(), &now) != 0) return;
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const std::string prefix = path.substr(slash == std::string::npos ? 0 : slash + 1) + ".";
  const std::string own_prefix = prefix + host_of_pids() + ".";
  DIR* entries = opendir(folder.c_str());
  if (entries == nullptr) return;
  while (const dirent* entry = readdir(entries)) {
    const std::string name = entry->d_name;
    if (!name.starts_with(prefix)) continue;
    const std::string file = slash == std::string::npos ? name : folder + name;
    struct stat made {};
    const bool is_own = name.starts_with(own_prefix);
    const int pid = is_own ? atoi(name.c_str() + own_prefix.size()) : 0;
    const bool is_orphan = is_own && pid > 0 && process_start_time_ticks(pid) == 0;
    const bool is_old = stat(file.c_str(), &made) == 0 &&
                        now.st_mtim.tv_sec - made.st_mtim.tv_sec > kLeaseDeadSeconds;
    if (is_orphan || is_old) unlink(file.c_str());
  }
  closedir(entries);
}

double seconds_of(const timespec& time) {
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double age_seconds(const std::string& path, LeaseClock* clock) {
  struct stat held {};
  if (stat(path.c_str(), &held) != 0) return 1e9;
  return clock->now_s(path) - seconds_of(held.st_mtim);
}

/// `pids`: whose process id it is, as host_of_pids() has it.
LeaseOwner parse_owner(const std::string& text, std::string* pids = nullptr) {
  LeaseOwner owner;
  char host[256] = "";
  char token[64] = "";
  char note[512] = "";
  unsigned long long start = 0;
  if (sscanf(text.c_str(), "%255s %d %llu %63s %511[^\n]", host, &owner.pid, &start, token, note) >=
      4) {
    owner.host = host;
    if (pids != nullptr) *pids = owner.host;
    owner.host.resize(std::min(owner.host.size(), owner.host.find('@')));
    owner.token = token;
    owner.note = note;
    owner.start_time_ticks = start;
  }
  return owner;
}

/// Moves the file of the dead owner with `token` away. Of two takers one finds nothing to move; one
/// that moved a newer owner's file, because the other was faster, puts it back.
void bury(const std::string& path, const std::string& token) {
  const std::string grave = private_name(path);
  if (rename(path.c_str(), grave.c_str()) != 0) return;
  const std::string text = read_small(grave);
  if (parse_owner(text).token != token) (void)place_file(grave, path, text);
  unlink(grave.c_str());
}

}  // namespace

uint64_t process_start_time_ticks(int32_t pid) {
  const std::string text = read_small("/proc/" + std::to_string(pid) + "/stat");
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  const char* field = text.c_str() + name_end + 2;  // field 3, the state
  if (*field == 'Z' || *field == 'X') return 0;
  for (int index = 3; index < 22 && field != nullptr; ++index) {
    field = strchr(field, ' ');
    if (field != nullptr) ++field;
  }
  return field == nullptr ? 0 : strtoull(field, nullptr, 10);
}

std::string local_host_name() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return *name == '\0' ? "localhost" : name;
}

double LeaseClock::now_s(const std::string& path) {
  if (now_s_) return *now_s_;
  struct stat now {};
  const std::string probe = private_name(path);
  bool has_clock = false;
  if (write_private(probe, "")) {
    has_clock = stat(probe.c_str(), &now) == 0;
    unlink(probe.c_str());
  }
  if (!has_clock) clock_gettime(CLOCK_REALTIME, &now.st_mtim);
  now_s_ = seconds_of(now.st_mtim);
  return *now_s_;
}

std::optional<LeaseOwner> read_lease(const std::string& path, LeaseClock* clock) {
  if (access(path.c_str(), F_OK) != 0) return std::nullopt;
  std::string pids;
  LeaseOwner owner = parse_owner(read_small(path), &pids);
  if (owner.pid != 0 && pids == host_of_pids()) {
    owner.is_alive = process_start_time_ticks(owner.pid) == owner.start_time_ticks;
  } else {
    const std::optional<bool> lives = lives_beside_us(pids, owner.start_time_ticks);
    LeaseClock own;
    owner.is_alive =
        lives ? *lives : age_seconds(path, clock != nullptr ? clock : &own) < kLeaseDeadSeconds;
  }
  return owner;
}

Status write_lease_of(const std::string& path, const LeaseOwner& owner) {
  const std::string text = owner.host + " " + std::to_string(owner.pid) + " " +
                           std::to_string(owner.start_time_ticks) + " " + owner.token +
                           (owner.note.empty() ? "" : " " + owner.note) + "\n";
  const std::string fresh = private_name(path);
  if (Status status = write_private(fresh, text); !status) return status;
  if (rename(fresh.c_str(), path.c_str()) == 0) return {};
  const int error_number = errno;
  unlink(fresh.c_str());
  return Error{Code::kIo, "cannot write " + path + ": " + strerror(error_number)};
}

void touch_lease_of(const std::string& path, const LeaseOwner& owner) noexcept {
  const std::string text = read_small(path);
  const LeaseOwner held = parse_owner(text);
  const bool is_same = held.pid == owner.pid && held.token == owner.token &&
                       held.start_time_ticks == owner.start_time_ticks;
  // Where it cannot be read, for want of a descriptor, say, the owner lives all the same.
  if (is_same || text.empty()) utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
}

Result<Lease> Lease::take(const std::string& path) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const std::string text = host_of_pids() + " " + std::to_string(getpid()) + " " +
                           std::to_string(process_start_time_ticks(getpid())) + " " +
                           std::to_string(now.tv_sec) + std::to_string(now.tv_nsec) + "\n";
  const std::string fresh = private_name(path);
  if (Status status = write_private(fresh, text); !status) return status.error();
  int error_number = EEXIST;
  for (int attempt = 0; attempt < 3 && error_number == EEXIST; ++attempt) {
    error_number = place_file(fresh, path, text);
    if (error_number == 0) {
      remove_leftovers(path);
      unlink(fresh.c_str());
      return Lease(path, text);
    }
    if (error_number != EEXIST) break;
    const std::optional<LeaseOwner> owner = read_lease(path);
    if (owner && owner->is_alive) {
      unlink(fresh.c_str());
      return Error{Code::kBusy, path + " is held by process " + std::to_string(owner->pid) +
                                    " on " + owner->host};
    }
    if (owner) bury(path, owner->token);  // else it is released, or another one just begins it
  }
  unlink(fresh.c_str());
  return Error{Code::kIo, "cannot take " + path + ": " + strerror(error_number)};
}

Lease::Lease(Lease&& other) noexcept
    : path_(std::exchange(other.path_, {})), text_(std::move(other.text_)) {}

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this != &other) {
    release();
    path_ = std::exchange(other.path_, {});
    text_ = std::move(other.text_);
  }
  return *this;
}

Lease::~Lease() { release(); }

bool Lease::beat() noexcept {
  if (path_.empty() || read_small(path_) != text_) return false;
  return utimensat(AT_FDCWD, path_.c_str(), nullptr, 0) == 0;
}

void Lease::release() noexcept {
  if (!path_.empty() && read_small(path_) == text_) unlink(path_.c_str());
  path_.clear();
}

}  // namespace aon
