/// Looks at programs that are due (busy_programs.h) beside the drain thread: the environment of one
/// is read under a lock of its memory, which a system call of its own may hold for long, its image
/// under one of its exec() (old kernels: as long as that takes).
///
///     ask(questions) ---> a thread that ends with the last of them ---> take(), later
///
/// Ranks that compute are due together: those asked with one that hangs are left to the thread of
/// the next ask().
/// Thread: the drain thread, which waits for none of them.   Cost: a thread where some are due.
/// Errors: where none can be made, or kMostLookThreads hang, there is no answer: those that are
/// asked wait for a thread, and late() names them.
#pragma once

#include <aon/mutex.h>
#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "core/agent/followable.h"

namespace aon::agent {

constexpr size_t kMostLookThreads = 4;
constexpr uint64_t kLateLookNs = 10'000'000'000;  ///< a starved machine takes a second or two

class FollowableLooks {
 public:
  struct Question {
    uint32_t number;  ///< of the program in the state
    pid_t pid;
    uint64_t refused_image;  ///< image_of() that is not to be looked at again; 0: none
  };
  struct Answer {
    uint32_t number;
    uint64_t image;    ///< 0: it shows none, or has become another program meanwhile
    Followable found;  ///< as followable_program() has it
  };
  using Look = std::function<Followable(pid_t)>;

  /// Those of which there is no answer yet are not asked again.
  void ask(const std::vector<Question>& questions, const Look& look, uint64_t now_ns);
  std::vector<Answer> take();
  /// Numbers of those that were asked kLateLookNs ago, of which there is no answer yet.
  std::vector<uint32_t> late(uint64_t now_ns) const;

 private:
  struct Task {
    Question question;
    Look look;
  };
  struct Shared {
    Mutex m;
    std::deque<Task> tasks AON_GUARDED_BY(m);              ///< not begun yet
    std::map<uint32_t, uint64_t> asked AON_GUARDED_BY(m);  ///< when; no answer yet
    std::vector<Answer> answers AON_GUARDED_BY(m);
    size_t thread_count AON_GUARDED_BY(m) = 0;
  };
  static void run(Shared* shared);

  /// Of threads that may hang longer than this lives, too.
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace aon::agent
