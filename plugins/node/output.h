/// Where the sources of this folder put what they read: metrics are defined when they get their
/// first value, and counts go on from 0 whatever the counter of the machine does.
/// Owner: a session.   Thread: the provider's.   Cost: a look-up in a map per value.
#pragma once

#include <aon/provider.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace aon::node {

/// At the end of the description of every series that other jobs on the node are in as well.
constexpr const char* kShared = " (node-wide, not this job)";

/// A count made of the readings of a counter: it begins at 0 and never decreases.
class Total {
 public:
  enum class Decrease {
    kRestarted,  ///< the counter began again at 0 (a NIC was reset, a module reloaded)
    kWrapped,    ///< it reached its range and began again at 0
    kNoise       ///< the kernel corrects it now and then (/proc/stat); nothing was counted
  };

  /// What was counted since the first call, `raw` included. `range`: where kWrapped begins again.
  uint64_t advance(uint64_t raw, Decrease decrease = Decrease::kRestarted, uint64_t range = 0);
  uint64_t sum() const { return sum_; }

 private:
  std::optional<uint64_t> last_;
  uint64_t sum_ = 0;
};

/// Name, unit (UCUM) and description of a metric.
struct Series {
  std::string name;
  const char* unit;
  std::string description;
};

struct StateText {
  aon_state state = AON_STATE_ON;
  std::string reason;
  std::string remedy;

  size_t wrong_bytes = 0;  ///< of the reason: what is wrong stands before what is merely told

  /// Adds a reason and its remedy to those that are there already; `worse` is the state then.
  void add(aon_state worse, const std::string& why, const std::string& what_helps);
};

class Output {
 public:
  Output(aon_core* core, const aon_core_api* api) : core_(core), api_(api) {}

  /// Time of the samples that follow. All of one time make one row.
  void set_time(uint64_t ticks) { ticks_ = ticks; }

  /// A value of its own.
  void value(uint32_t process, const Series& series, double value);
  /// A reading of a counter; `scale` turns what was counted into the unit of the series.
  void count(uint32_t process, const Series& series, uint64_t raw, double scale = 1,
             Total::Decrease decrease = Total::Decrease::kRestarted, uint64_t range = 0);
  /// A count that is made already. Times as in aon_core_api::sample.
  void total(uint32_t process, const Series& series, double value, uint64_t enabled_ns = 0,
             uint64_t running_ns = 0);

  void set_state(uint32_t process, const StateText& state);
  uint64_t now_ticks() const { return api_->now_ticks(core_); }
  void log(aon_log_level level, const std::string& text) { api_->log(core_, level, text.c_str()); }
  /// Of a process that has ended.
  void forget(uint32_t process);

 private:
  struct Metric {
    uint32_t id = AON_NO_ID;
    Total total;
  };

  Metric& metric_of(uint32_t process, const Series& series, aon_metric_mode mode);
  void sample(uint32_t process, const Metric& metric, double value, uint64_t enabled_ns,
              uint64_t running_ns);

  aon_core* core_;
  const aon_core_api* api_;
  uint64_t ticks_ = 0;
  std::map<std::pair<uint32_t, std::string>, Metric> metrics_;
};

}  // namespace aon::node
