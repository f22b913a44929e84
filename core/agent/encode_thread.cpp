#include "core/agent/encode_thread.h"

#include <chrono>

#include "core/base/log.h"

namespace aon::agent {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kLeasePeriod(50);
constexpr std::chrono::seconds kWholePeriod(1);

}  // namespace

void EncodeThread::start() {
  thread_ = std::thread([this] { run(); });
}

bool EncodeThread::restore() {
  MutexLock lock(&m_);
  // Another agent of this launch may still be finishing in the same folder.
  while (state_->header().has_lease.load(std::memory_order_acquire) ==
         0) {  // pairs with agent:lease
    if (is_stopping_) return false;
    lock.wait_for(&wake_, kLeasePeriod);
  }
  lock.unlock();
  const Status status = encoder_->restore();
  if (!status) AON_LOG_ERROR("spool: %s", status.error().message.c_str());
  return status.has_value();
}

void EncodeThread::run() {
  if (!restore()) {
    has_failed_.store(true, std::memory_order_release);  // pairs with agent:failed
    const MutexLock lock(&m_);
    done_flushes_ = UINT64_MAX;
    flushed_.notify_all();
    return;
  }
  Clock::time_point next_flush = Clock::now();
  Clock::time_point next_whole = next_flush;
  MutexLock lock(&m_);
  for (;;) {
    if (!is_stopping_ && wanted_flushes_ == done_flushes_) lock.wait_until(&wake_, next_flush);
    const uint64_t wanted = wanted_flushes_;
    const bool is_asked = wanted != done_flushes_;
    const bool is_last = is_stopping_;
    lock.unlock();
    encoder_->consume();
    const Clock::time_point now = Clock::now();
    if (now >= next_flush || encoder_->wants_flush() || is_asked || is_last) {
      const bool is_whole = is_asked || now >= next_whole;
      encoder_->flush(is_last    ? FlushExtent::kLast
                      : is_whole ? FlushExtent::kAll
                                 : FlushExtent::kEvents);
      next_flush = now + std::chrono::milliseconds(flush_ms_);
      if (is_whole) next_whole = now + kWholePeriod;
    }
    lock.lock();
    done_flushes_ = wanted;
    flushed_.notify_all();
    if (is_last) return;
  }
}

void EncodeThread::flush_all() {
  MutexLock lock(&m_);
  const uint64_t wanted = ++wanted_flushes_;
  wake_.notify_one();
  lock.wait(&flushed_, [&]() AON_REQUIRES(m_) { return done_flushes_ >= wanted; });
}

void EncodeThread::flush_soon() {
  const MutexLock lock(&m_);
  ++wanted_flushes_;
  wake_.notify_one();
}

void EncodeThread::stop() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(&m_);
    is_stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

}  // namespace aon::agent
