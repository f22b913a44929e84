/// A question that may take long, or for ever (a lock of another process's memory), asked in a
/// thread of its own: its answer is taken up later, by who has other things to do.
/// Thread: one asks and takes.   Cost: a thread for each question.
/// Errors: where no thread can be made there is no answer, and one may ask again; behind a question
/// that hangs none is asked any more.
#pragma once

#include <aon/mutex.h>

#include <functional>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace aon::agent {

template <class Answer>
class Beside {
 public:
  /// True while the last question has no answer yet.
  bool is_asked() const {
    const MutexLock lock(&shared_->m);
    return shared_->is_asked;
  }
  void ask(std::function<Answer()> question) {
    const MutexLock lock(&shared_->m);
    if (shared_->is_asked) return;
    try {
      std::thread([shared = shared_, question = std::move(question)] {
        Answer answer = question();
        const MutexLock done(&shared->m);
        shared->answer = std::move(answer);
        shared->is_asked = false;
      }).detach();
      shared_->is_asked = true;
    } catch (const std::system_error&) {
      // ulimit -u, which the ranks fill
    }
  }
  std::optional<Answer> take() {
    const MutexLock lock(&shared_->m);
    return std::exchange(shared_->answer, std::nullopt);
  }

 private:
  struct Shared {
    Mutex m;
    std::optional<Answer> answer AON_GUARDED_BY(m);
    bool is_asked AON_GUARDED_BY(m) = false;
  };
  /// Of a thread that may live longer than this, too.
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace aon::agent
