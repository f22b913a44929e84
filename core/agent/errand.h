/// A courier (core/delivery/courier.h), where it goes, and when it goes again: in the process that
/// the keeper starts for it (transfer.h).
///
///     --try_to_connect()--> connected --go_on()--> connected --hand_over()--> the archive has it
///         |--pause, twice as long each time        |--broken, refused for now--> again
///                                                  |--refused for good--> give_up()
///
/// After a refusal all of the spool comes again: the pauses are long, for the network is the
/// application's.
/// Thread: one.   Errors: told in the log; the spool stays here.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "core/agent/config.h"
#include "core/delivery/courier.h"

namespace aon::agent {

/// What the process of a receiver or courier ends with.
enum ExitCode : int { kDelivered = 0, kFailed = 1, kIsShared = 2 };

/// DIR/agents.
std::string agents_of(const Config& config);

class Errand {
 public:
  /// `assembling_ms`: when it was last said that somebody makes the archive.
  Errand(const Config& config, delivery::Sender sender, std::atomic<int64_t>* assembling_ms);

  /// What the process ends with; nullopt: it goes on. `is_last`: the ranks have ended.
  std::optional<int> try_to_connect(bool is_last);
  /// While the ranks run.
  void go_on();
  /// The spool is complete. True: the archive has it.
  bool hand_over();
  /// What the process ends with when nobody takes it.
  int give_up() const;

  bool is_connected() const { return courier_.is_connected(); }
  bool is_refused_for_good() const;
  int64_t reached_ms() const { return courier_.reached_ms(); }

 private:
  bool is_refused() const { return !courier_.refusal().empty(); }
  bool is_put_off(bool is_last);
  void complain(const Status& status);
  void leave_note(const std::string& place) const;

  const Config& config_;
  delivery::Courier courier_;
  std::atomic<int64_t>* assembling_ms_;
  std::string problem_;  ///< the last one; empty: there was none
  int64_t try_pause_ms_;
  int64_t refused_pause_ms_;
  int64_t next_try_ms_ = 0;
  bool is_last_ = false;  ///< the ranks have ended
  bool is_refused_at_last_ = false;
};

}  // namespace aon::agent
