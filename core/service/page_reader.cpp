#include "core/service/page_reader.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/base/file.h"
#include "core/base/packet.h"

namespace aon::service {
namespace {

constexpr int kTries = 100;  ///< of a sample that is being written

/// Of an entry: the version is read before and after all others.
template <class T>
T get(const std::atomic<T>& field) {
  return field.load(std::memory_order_acquire);  // pairs with service:entry
}

template <size_t kBytes>
std::string text_of(const char (&from)[kBytes]) {
  return std::string(from, strnlen(from, kBytes));
}

bool is_folder_of(const std::string& path, uid_t user, bool or_anybody) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return false;
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) return false;
  return or_anybody || status.st_uid == 0 || status.st_uid == user;
}

/// See above: nobody else can have put a socket there.
bool is_trusted(const std::string& socket_path) {
  const std::string folder = socket_path.substr(0, socket_path.rfind('/'));
  const std::string above = folder.substr(0, folder.rfind('/'));
  if (is_folder_of(folder, ::geteuid(), false)) return true;
  return is_folder_of(folder, 0, true) && is_folder_of(above, 0, false);
}

/// The page's descriptor, or nothing.
UniqueFd receive_page(int connection) {
  pollfd answer{connection, POLLIN, 0};
  if (::poll(&answer, 1, kAnswerMs) != 1) return UniqueFd();
  PageHello hello{};
  std::vector<UniqueFd> descriptors;
  const ssize_t bytes = receive_packet(
      connection, {reinterpret_cast<uint8_t*>(&hello), sizeof(hello)}, &descriptors, 0);
  const bool is_ours = bytes == static_cast<ssize_t>(sizeof(hello)) && hello.magic == kPageMagic &&
                       hello.version == kPageVersion && hello.page_bytes == sizeof(Page);
  return is_ours && !descriptors.empty() ? std::move(descriptors.front()) : UniqueFd();
}

/// A file that can shrink would kill who reads it.
const Page* map_page(int fd) {
  struct stat status {};
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || ::fstat(fd, &status) != 0 ||
      status.st_size != static_cast<off_t>(sizeof(Page)))
    return nullptr;
  void* memory = ::mmap(nullptr, sizeof(Page), PROT_READ, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return nullptr;
  const auto* page = static_cast<const Page*>(memory);
  if (page->magic == kPageMagic && page->version == kPageVersion) return page;
  ::munmap(memory, sizeof(Page));
  return nullptr;
}

}  // namespace

std::string PageReader::socket_path() {
  const char* path = ::secure_getenv("AON_NODE_SOCKET");
  return path != nullptr ? path : kSocketPath;
}

Result<std::unique_ptr<PageReader>> PageReader::connect(const std::string& socket_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.empty() || socket_path.size() >= sizeof(address.sun_path))
    return Error{Code::kUnavailable, socket_path + " is no name for a socket"};
  if (::access(socket_path.c_str(), F_OK) != 0)
    return Error{Code::kNotFound, "no service runs on this node"};
  if (!is_trusted(socket_path))
    return Error{Code::kUnavailable, socket_path + " is where others may have put it: not used"};
  std::memcpy(address.sun_path, socket_path.c_str(), socket_path.size());
  UniqueFd connection(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!connection || ::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address),
                               sizeof(address)) != 0)
    return errno_error("cannot reach the node's service at", socket_path, errno);
  const UniqueFd fd = receive_page(connection.get());
  const Page* page = fd ? map_page(fd.get()) : nullptr;
  if (page == nullptr)
    return Error{Code::kUnavailable, "the node's service does not answer, or is another version"};
  return std::unique_ptr<PageReader>(new PageReader(std::move(connection), page));
}

PageReader::PageReader(UniqueFd connection, const Page* page)
    : connection_(std::move(connection)),
      page_(page),
      // pairs with service:count
      crash_count_(page->crash_count.load(std::memory_order_acquire)) {}

PageReader::~PageReader() { ::munmap(const_cast<Page*>(page_), sizeof(Page)); }

bool PageReader::is_alive() const {
  pollfd end{connection_.get(), POLLIN, 0};
  return ::poll(&end, 1, 0) == 0;
}

std::vector<std::string> PageReader::providers() const {
  const uint32_t count = std::min(page_->provider_count.load(std::memory_order_acquire),
                                  kMaxShared);  // pairs with service:count
  std::vector<std::string> names;
  for (uint32_t i = 0; i < count; ++i) names.push_back(text_of(page_->providers[i].name));
  return names;
}

std::optional<ProviderView> PageReader::provider(const std::string& name) const {
  const uint32_t count = std::min(page_->provider_count.load(std::memory_order_acquire),
                                  kMaxShared);  // pairs with service:count
  for (uint32_t i = 0; i < count; ++i) {
    const SharedProvider& shared = page_->providers[i];
    if (text_of(shared.name) == name)
      return ProviderView{i, get(shared.state), text_of(shared.reason), text_of(shared.remedy)};
  }
  return std::nullopt;
}

uint32_t PageReader::state(uint32_t provider) const {
  return provider < kMaxShared ? get(page_->providers[provider].state) : 0;
}

std::vector<SeriesView> PageReader::series(uint32_t provider, uint32_t first) const {
  std::vector<SeriesView> found;
  const uint32_t count = std::min(page_->series_count.load(std::memory_order_acquire),
                                  kMaxSeries);  // pairs with service:count
  for (uint32_t i = first; i < count; ++i) {
    const SharedSeries& one = page_->series[i];
    if (one.provider != provider) continue;
    found.push_back({i, one.mode, text_of(one.name), text_of(one.unit), text_of(one.description)});
  }
  return found;
}

std::optional<SampleView> PageReader::sample(uint32_t series) const {
  if (series >= kMaxSeries) return std::nullopt;
  const SharedSeries& one = page_->series[series];
  for (int i = 0; i < kTries; ++i) {
    const uint32_t before = get(one.version);
    const SampleView view{get(one.ticks), get(one.value), get(one.enabled_ns), get(one.running_ns)};
    if (before % 2 != 0 || one.version.load(std::memory_order_relaxed) != before) continue;
    if (view.ticks == 0) return std::nullopt;
    return view;
  }
  return std::nullopt;
}

bool PageReader::has_log() const { return page_->has_log.load(std::memory_order_relaxed) != 0; }

std::vector<Crash> PageReader::crashes() {
  std::vector<Crash> found;
  const uint32_t count =
      page_->crash_count.load(std::memory_order_acquire);  // pairs with service:count
  if (count - crash_count_ > kCrashCount) crash_count_ = count - kCrashCount;
  for (; crash_count_ != count; ++crash_count_) {
    const SharedCrash& one = page_->crashes[crash_count_ % kCrashCount];
    const uint32_t before = get(one.version);
    const Crash crash{get(one.tid), get(one.place)};
    if (before % 2 == 0 && one.version.load(std::memory_order_relaxed) == before)
      found.push_back(crash);
  }
  return found;
}

}  // namespace aon::service
