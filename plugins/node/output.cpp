#include "node/output.h"

#include <algorithm>

namespace aon::node {

uint64_t Total::advance(uint64_t raw, Decrease decrease, uint64_t range) {
  if (!last_) {
    last_ = raw;
    return sum_;
  }
  if (raw >= *last_) {
    sum_ += raw - *last_;
  } else if (decrease == Decrease::kNoise) {
    return sum_;  // the highest reading stays the mark
  } else if (decrease == Decrease::kWrapped && range >= *last_) {
    sum_ += range - *last_ + raw;
  } else {
    sum_ += raw;
  }
  last_ = raw;
  return sum_;
}

void StateText::add(aon_state worse, const std::string& why, const std::string& what_helps) {
  const bool is_worse = state == AON_STATE_ON || worse == AON_STATE_OFF;
  if (is_worse) state = worse;
  if (reason.find(why) == std::string::npos) {
    const size_t at = worse == AON_STATE_ON ? reason.size() : wrong_bytes;
    const std::string text = at == 0 ? why : "; " + why;
    reason.insert(at, at == 0 && !reason.empty() ? text + "; " : text);
    if (worse != AON_STATE_ON) wrong_bytes += text.size();
  }
  if (remedy.find(what_helps) == std::string::npos) {
    remedy += (remedy.empty() ? "" : "; ") + what_helps;
  }
}

Output::Metric& Output::metric_of(uint32_t process, const Series& series, aon_metric_mode mode) {
  const auto [found, is_new] = metrics_.try_emplace({process, series.name});
  if (is_new) {
    found->second.id = api_->define_metric(core_, process, series.name.c_str(), series.unit,
                                           series.description.c_str(), mode);
  }
  return found->second;
}

void Output::sample(uint32_t process, const Metric& metric, double value, uint64_t enabled_ns,
                    uint64_t running_ns) {
  if (metric.id == AON_NO_ID) return;
  api_->sample(core_, process, metric.id, ticks_, value, enabled_ns, running_ns);
}

void Output::value(uint32_t process, const Series& series, double value) {
  sample(process, metric_of(process, series, AON_METRIC_ABSOLUTE), value, 0, 0);
}

void Output::count(uint32_t process, const Series& series, uint64_t raw, double scale,
                   Total::Decrease decrease, uint64_t range) {
  Metric& metric = metric_of(process, series, AON_METRIC_ACCUMULATED);
  const uint64_t sum = metric.total.advance(raw, decrease, range);
  sample(process, metric, static_cast<double>(sum) * scale, 0, 0);
}

void Output::total(uint32_t process, const Series& series, double value, uint64_t enabled_ns,
                   uint64_t running_ns) {
  sample(process, metric_of(process, series, AON_METRIC_ACCUMULATED), value, enabled_ns,
         running_ns);
}

void Output::set_state(uint32_t process, const StateText& state) {
  api_->set_state(core_, process, state.state, state.reason.c_str(), state.remedy.c_str());
}

void Output::forget(uint32_t process) {
  metrics_.erase(metrics_.lower_bound({process, ""}), metrics_.lower_bound({process + 1, ""}));
}

}  // namespace aon::node
