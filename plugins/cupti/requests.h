/// What threads of the program ask of our thread: one after the other, each for a limited time.
///
///     ask(): free -> asked            a program's thread; the next one waits
///            asked -> free            the time is over before it was taken: withdrawn
///            taken -> abandoned       ... and after: our thread will free it
///     take(): asked -> taken          our thread
///     answer(): taken -> answered     which ask() frees
///               abandoned -> free
///
/// Thread: ask() any, take() and answer() our own.   Cost: looks each millisecond.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace aon::cupti {

enum class Request : uint32_t { kNone = 0, kStop, kPause, kResume };
enum class Answer : uint8_t { kNone = 0, kDone, kRefused };

class Requests {
 public:
  /// Waits for others who ask and for the answer, at most `timeout_ms` in all. kNone: there was
  /// none; it was not taken and never will be, or will be answered to nobody.
  Answer ask(Request request, uint32_t timeout_ms, void (*wake)()) {
    uint32_t waited_ms = 0;
    State state = State::kFree;
    // pairs with cupti:request
    while (!state_.compare_exchange_weak(state, State::kFilling, std::memory_order_acquire)) {
      state = State::kFree;
      if (++waited_ms >= timeout_ms) return Answer::kNone;
      usleep(1000);
    }
    request_ = request;
    state_.store(State::kAsked, std::memory_order_release);  // pairs with cupti:request
    wake();
    for (;; ++waited_ms) {
      const State now = state_.load(std::memory_order_acquire);  // pairs with cupti:request
      if (now == State::kAnswered) break;
      if (waited_ms >= timeout_ms && give_up(now)) return Answer::kNone;
      if (waited_ms < timeout_ms) usleep(1000);
    }
    const bool is_well = is_well_;
    state_.store(State::kFree, std::memory_order_release);  // pairs with cupti:request
    return is_well ? Answer::kDone : Answer::kRefused;
  }

  /// kNone: nobody asks.
  Request take() {
    State state = State::kAsked;
    // pairs with cupti:request
    const bool is_asked =
        state_.compare_exchange_strong(state, State::kTaken, std::memory_order_acquire);
    return is_asked ? request_ : Request::kNone;
  }
  /// Who asked has given up: the program may be at its end.
  bool is_abandoned() const { return state_.load(std::memory_order_relaxed) == State::kAbandoned; }
  /// Of what was taken. False: nobody waits for it any more.
  bool answer(bool is_well) {
    is_well_ = is_well;
    State state = State::kTaken;
    // pairs with cupti:request
    if (state_.compare_exchange_strong(state, State::kAnswered, std::memory_order_acq_rel))
      return true;
    state_.store(State::kFree, std::memory_order_release);  // pairs with cupti:request
    return false;
  }

 private:
  enum class State : uint32_t { kFree = 0, kFilling, kAsked, kTaken, kAnswered, kAbandoned };

  /// False: it has gone on in the meantime.
  bool give_up(State state) {
    const State next = state == State::kAsked ? State::kFree : State::kAbandoned;
    // pairs with cupti:request
    return state_.compare_exchange_strong(state, next, std::memory_order_acq_rel);
  }

  std::atomic<State> state_{State::kFree};
  Request request_ = Request::kNone;  ///< of who has it: the one that asks, then our thread
  bool is_well_ = false;
};

}  // namespace aon::cupti
