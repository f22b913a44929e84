#include "core/agent/bell.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "core/base/file.h"
#include "core/base/log.h"

namespace aon::agent {
namespace {

constexpr std::chrono::milliseconds kRest(1);  ///< between wakes, whoever asks for them

}  // namespace

Result<UniqueFd> BellWatch::create() {
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  UniqueFd fd(::memfd_create("aon-bell", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  // Its memory is there before a program touches it, as that of a ring.
  if (!fd || ::ftruncate(fd.get(), kBellBytes) != 0 ||
      ::fallocate(fd.get(), 0, 0, kBellBytes) != 0 || ::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0)
    return errno_error("cannot create", "the bell of the node", errno);
  return fd;
}

BellWatch::BellWatch(int page_fd)
    : page_fd_(page_fd), event_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  void* page = ::mmap(nullptr, kBellBytes, PROT_READ | PROT_WRITE, MAP_SHARED, page_fd, 0);
  if (page == MAP_FAILED || !event_fd_) {
    AON_LOG_WARNING("bursts do not wake the agent: %s", strerror(errno));
    return;
  }
  bell_ = static_cast<Bell*>(page);
}

BellWatch::~BellWatch() {
  stop();
  if (bell_ != nullptr) ::munmap(bell_, kBellBytes);
}

void BellWatch::start() {
  if (bell_ == nullptr) return;
  const uint32_t seen = bell_->rings.load(std::memory_order_acquire);  // pairs with agent:bell
  thread_ = std::thread([this, seen] { run(seen); });
}

void BellWatch::stop() {
  if (!thread_.joinable()) return;
  is_stopping_.store(true, std::memory_order_relaxed);
  // Once is enough, unless a process writes what it likes into the page.
  while (!has_ended_.load(std::memory_order_relaxed)) {
    bell_->rings.fetch_add(1, std::memory_order_release);  // pairs with agent:bell
    ::syscall(SYS_futex, &bell_->rings, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    std::this_thread::sleep_for(kRest);
  }
  thread_.join();
}

void BellWatch::arm() noexcept {
  if (bell_ != nullptr) bell_->armed.store(1, std::memory_order_relaxed);
}

void BellWatch::disarm() noexcept {
  if (bell_ != nullptr) bell_->armed.store(0, std::memory_order_relaxed);
}

void BellWatch::run(uint32_t seen) noexcept {
  while (!is_stopping_.load(std::memory_order_relaxed)) {
    ::syscall(SYS_futex, &bell_->rings, FUTEX_WAIT, seen, nullptr, nullptr, 0);
    const uint32_t rings = bell_->rings.load(std::memory_order_acquire);  // pairs with agent:bell
    if (rings == seen) continue;
    seen = rings;
    ::eventfd_write(event_fd_.get(), 1);
    std::this_thread::sleep_for(kRest);
  }
  has_ended_.store(true, std::memory_order_relaxed);
}

}  // namespace aon::agent
