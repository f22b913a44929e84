#include "core/agent/shared_metrics.h"

namespace aon::agent {
namespace {

uint64_t since(uint64_t now, uint64_t base) { return now > base ? now - base : 0; }

}  // namespace

/// Those that are there at first have counted for others before; later ones began after us.
void SharedMetrics::find_series(aon_core* core, const aon_core_api& api) {
  for (service::SeriesView& view : page_->series(provider_, next_series_)) {
    next_series_ = view.index + 1;
    Series series{view, 0, 0, {}};
    series.metric =
        api.define_metric(core, AON_PROCESS_NODE, view.name.c_str(), view.unit.c_str(),
                          view.description.c_str(), static_cast<aon_metric_mode>(view.mode));
    const bool is_count = view.mode == AON_METRIC_ACCUMULATED;
    if (is_count && is_first_) series.base = page_->sample(view.index).value_or(series.base);
    if (series.metric != AON_NO_ID) series_.push_back(std::move(series));
  }
  is_first_ = false;
}

void SharedMetrics::tick(aon_core* core, const aon_core_api& api) {
  if (is_over_) return;
  if (!page_->is_alive()) {
    is_over_ = true;
    api.set_state(core, AON_PROCESS_NODE, AON_STATE_DEGRADED,
                  "the node's service has ended; nothing since", "systemctl restart aon-node");
    return;
  }
  find_series(core, api);
  for (Series& series : series_) {
    const auto sample = page_->sample(series.view.index);
    if (!sample || sample->ticks == series.last_ticks) continue;
    series.last_ticks = sample->ticks;
    api.sample(core, AON_PROCESS_NODE, series.metric, sample->ticks,
               sample->value - series.base.value, since(sample->enabled_ns, series.base.enabled_ns),
               since(sample->running_ns, series.base.running_ns));
  }
}

}  // namespace aon::agent
