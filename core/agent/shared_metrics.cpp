#include "core/agent/shared_metrics.h"

namespace aon::agent {
namespace {

constexpr uint64_t kSilentNs = 60'000'000'000;  ///< the slowest provider reads twice as often

uint64_t since(uint64_t now, uint64_t base) { return now > base ? now - base : 0; }

}  // namespace

/// Those that are there at first have counted for others before; later ones began after us.
void SharedMetrics::find_series(aon_core* core, const aon_core_api& api) {
  for (service::SeriesView& view : page_->series(provider_, next_series_)) {
    next_series_ = view.index + 1;
    Series series{view, 0, 0, {}, view.mode != AON_METRIC_ACCUMULATED || !is_first_};
    series.metric =
        api.define_metric(core, AON_PROCESS_NODE, view.name.c_str(), view.unit.c_str(),
                          view.description.c_str(), static_cast<aon_metric_mode>(view.mode));
    if (series.metric != AON_NO_ID) series_.push_back(std::move(series));
  }
  is_first_ = false;
}

/// True: at least one of them was new.
bool SharedMetrics::read_samples(aon_core* core, const aon_core_api& api) {
  bool has_news = false;
  for (Series& series : series_) {
    const auto sample = page_->sample(series.view.index);
    if (!sample || sample->ticks == series.last_ticks) continue;
    has_news = true;
    series.last_ticks = sample->ticks;
    if (!series.has_base) series.base = *sample;
    series.has_base = true;
    api.sample(core, AON_PROCESS_NODE, series.metric, sample->ticks,
               sample->value - series.base.value, since(sample->enabled_ns, series.base.enabled_ns),
               since(sample->running_ns, series.base.running_ns));
  }
  return has_news;
}

void SharedMetrics::tell_state(aon_core* core, const aon_core_api& api, uint64_t now_ns,
                               bool has_news) {
  if (has_news || news_ns_ == 0) news_ns_ = now_ns;
  const bool is_silent = now_ns - news_ns_ > kSilentNs;
  uint32_t state = page_->state(provider_);
  if (is_silent && state == AON_STATE_ON) state = AON_STATE_DEGRADED;
  if (state == told_state_) return;
  told_state_ = state;
  const bool is_on = state == AON_STATE_ON;
  api.set_state(core, AON_PROCESS_NODE, static_cast<aon_state>(state),
                is_on       ? ""
                : is_silent ? "the node's service has read nothing for a minute"
                            : "the node's service can read it no more",
                is_on ? "" : "see the log of aon-node");
}

void SharedMetrics::tick(aon_core* core, const aon_core_api& api, uint64_t now_ns) {
  if (is_over_) return;
  if (!page_->is_alive()) {
    is_over_ = true;
    api.set_state(core, AON_PROCESS_NODE, AON_STATE_DEGRADED,
                  "the node's service has ended; nothing since", "systemctl restart aon-node");
    return;
  }
  find_series(core, api);
  tell_state(core, api, now_ns, read_samples(core, api));
}

}  // namespace aon::agent
