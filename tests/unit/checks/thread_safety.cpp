// For checks_test.py: clang-tidy is to find the lines that are marked as bad, and nothing else. No
// part of the build.
#include <aon/mutex.h>

#include <chrono>
#include <condition_variable>

namespace {

class Counter {
 public:
  void add() {
    const aon::MutexLock lock(&m_);
    add_locked();
  }
  void add_without() {
    ++count_;  // bad
  }
  void call_without() {
    add_locked();  // bad
  }
  void add_after_unlock() {
    aon::MutexLock lock(&m_);
    ++count_;
    lock.unlock();
    ++count_;  // bad
  }
  void add_after_relock() {
    aon::MutexLock lock(&m_);
    lock.unlock();
    lock.lock();
    ++count_;
  }
  void take_twice() {
    const aon::MutexLock lock(&m_);
    take();  // bad
  }
  int take() AON_EXCLUDES(m_) {
    const aon::MutexLock lock(&m_);
    return count_;
  }
  bool wait() {
    aon::MutexLock lock(&m_);
    lock.wait(&changed_, [&]() AON_REQUIRES(m_) { return count_ == 1; });
    lock.wait_for(&changed_, std::chrono::seconds(1));
    lock.wait_until(&changed_, std::chrono::steady_clock::now());
    return lock.wait_for(&changed_, std::chrono::seconds(1),
                         [&]() AON_REQUIRES(m_) { return count_ == 1; });
  }
  void wait_unsaid() {
    aon::MutexLock lock(&m_);
    lock.wait(&changed_, [&] {
      return count_ == 1;  // bad
    });
  }

 private:
  void add_locked() AON_REQUIRES(m_) { ++count_; }

  aon::Mutex m_;
  std::condition_variable changed_;
  int count_ AON_GUARDED_BY(m_) = 0;
};

}  // namespace

int main() {
  Counter counter;
  counter.add();
  counter.add_without();
  counter.call_without();
  counter.add_after_unlock();
  counter.add_after_relock();
  counter.take_twice();
  counter.wait_unsaid();
  return counter.wait() ? counter.take() : 0;
}
