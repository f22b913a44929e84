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
  const uint64_t cost_ns = system_.now_ns() - begin_ns;
  if (cost_ns <= kMaxTickNs || pace_ >= kMaxPace) return;
  pace_ *= 2;
  output_.log(AON_LOG_INFO, "a reading took " + std::to_string(cost_ns / 1'000'000) +
                                " ms: from now on in every " + std::to_string(pace_) + ". tick");
}

void Session::finish() {
  output_.set_time(output_.now_ticks());
  read();
}

void Session::process_started(uint32_t, pid_t) {}
void Session::process_ended(uint32_t) {}

}  // namespace aon::node
