#include "core/agent/errand.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/time.h"
#include "core/cluster/address.h"
#include "core/cluster/meeting.h"
#include "core/delivery/names.h"

namespace aon::agent {
namespace {

using cluster::Again;

constexpr int kNewsMs = 1000;  ///< between looks whether an archive has it
constexpr int64_t kFirstPauseMs = 500;
constexpr int64_t kLongestPauseMs = 60'000;
constexpr int64_t kRefusedPauseMs = 10'000;
constexpr int64_t kLongestRefusedPauseMs = 600'000;
constexpr int64_t kLastRefusedPauseMs = 1000;  ///< when the ranks have ended, and somebody waits
constexpr int64_t kLongestLastRefusedPauseMs = 4000;

}  // namespace

std::string agents_of(const Config& config) { return cluster::agents_folder(config.job_folder); }

Errand::Errand(const Config& config, delivery::Sender sender, std::atomic<int64_t>* assembling_ms)
    : config_(config),
      courier_(std::move(sender)),
      assembling_ms_(assembling_ms),
      try_pause_ms_(kFirstPauseMs),
      refused_pause_ms_(kRefusedPauseMs) {}

std::optional<int> Errand::try_to_connect(bool is_last) {
  if (is_put_off(is_last)) return std::nullopt;
  const auto address = cluster::read_address(config_.meeting, cluster::kReceiverName);
  if (!address) return std::nullopt;
  const auto here = cluster::read_address(agents_of(config_), cluster::kReceiverName);
  if (here && here->token == address->token) return kIsShared;
  if (Status status = courier_.connect(*address); !status) complain(status);
  try_pause_ms_ = std::min(2 * try_pause_ms_, kLongestPauseMs);
  next_try_ms_ = now_ms() + try_pause_ms_;
  return std::nullopt;
}

/// When the ranks have ended it is tried at once, whatever was said before.
bool Errand::is_put_off(bool is_last) {
  if (is_last && !std::exchange(is_last_, true)) {
    refused_pause_ms_ = kLastRefusedPauseMs;
    return false;
  }
  if (is_refused() && courier_.again() == Again::kWhenDone && !is_last) return true;
  return now_ms() < next_try_ms_ && (!is_last || is_refused());
}

void Errand::go_on() {
  Status status = courier_.send_new();
  if (status) status = courier_.beat();
  if (!status) complain(status);
}

bool Errand::hand_over() {
  Status status = courier_.send_rest();
  while (status) {  // as long as the keeper waits
    const Result<std::string> place = courier_.wait_assembled(kNewsMs);
    assembling_ms_->store(courier_.assembling_ms(), std::memory_order_relaxed);
    if (!place) {
      status = place.error();
    } else if (!place->empty()) {
      courier_.remove_sent();
      leave_note(*place);
      return true;
    } else {
      status = courier_.beat();
    }
  }
  is_refused_at_last_ = is_refused();
  complain(status);
  return false;
}

bool Errand::is_refused_for_good() const {
  if (!is_refused() || courier_.again() == Again::kSoon) return false;
  return courier_.again() != Again::kWhenDone || is_refused_at_last_;
}

int Errand::give_up() const {
  const std::string none = "no agent of rank 0's node was found in " + config_.meeting;
  AON_LOG_WARNING("the spool stays on %s: %s; aon finalize joins the directories",
                  config_.node.c_str(), (problem_.empty() ? none : problem_).c_str());
  return kFailed;
}

/// Once, and each time that it is refused for another reason: it may come there all the same.
void Errand::complain(const Status& status) {
  const std::string before = std::exchange(problem_, status.error().message);
  if (is_refused_for_good()) return;  // give_up() tells it
  if (before.empty() || (is_refused() && before != problem_))
    AON_LOG_WARNING("the spool of %s is not with rank 0's yet: %s", config_.node.c_str(),
                    problem_.c_str());
  if (!is_refused()) return;
  next_try_ms_ = now_ms() + refused_pause_ms_;
  const int64_t longest_ms = is_last_ ? kLongestLastRefusedPauseMs : kLongestRefusedPauseMs;
  refused_pause_ms_ = std::min(2 * refused_pause_ms_, longest_ms);
}

void Errand::leave_note(const std::string& place) const {
  const std::string path = config_.job_folder + "/" + delivery::kDeliveredNote;
  const auto file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
  const std::string line = "What " + config_.node + " recorded is in " + place + "\n";
  if (file) static_cast<void>(write_all(file->get(), line.data(), line.size()));
}

}  // namespace aon::agent
