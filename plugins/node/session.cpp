#include "node/session.h"

namespace aon::node {

StateText Session::start(uint64_t now_ticks) {
  StateText state = find();
  if (state.state == AON_STATE_OFF) return state;
  output_.set_time(now_ticks);
  read();
  return state;
}

void Session::tick(uint64_t now_ticks) {
  if (++tick_count_ < pace_) return;
  tick_count_ = 0;
  output_.set_time(now_ticks);
  const uint64_t begin_ns = system_.now_ns();
  read();
  set_pace(system_.now_ns() - begin_ns);
}

/// One slow reading may have been an interrupted one, so the pace is not for good.
void Session::set_pace(uint64_t cost_ns) {
  if (cost_ns <= kMaxTickNs) {
    calm_ticks_ += pace_;
    if (pace_ == 1 || calm_ticks_ < kCalmTicks) return;
    pace_ /= 2;
    calm_ticks_ = 0;
    return;
  }
  calm_ticks_ = 0;
  if (pace_ >= kMaxPace) return;
  pace_ *= 2;
  if (pace_ <= told_pace_) return;
  told_pace_ = pace_;
  output_.log(AON_LOG_INFO, "a reading took " + std::to_string(cost_ns / 1'000'000) +
                                " ms: in every " + std::to_string(pace_) +
                                ". tick until they are quicker");
}

void Session::finish() {
  output_.set_time(output_.now_ticks());
  read();
}

void Session::process_started(uint32_t, pid_t) {}
void Session::process_ended(uint32_t) {}

}  // namespace aon::node
