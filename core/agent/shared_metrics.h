/// A provider whose values the node's service has read (core/service/page.h), as if this agent's
/// own had: the same metrics, counts from 0 on, through the same table of functions.
/// Owner and thread: as a provider's.   Cost: some loads a series and tick.
/// Errors: a service that ends leaves the provider degraded, with the reason.
#pragma once

#include <aon/provider.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/service/page_reader.h"

namespace aon::agent {

class SharedMetrics {
 public:
  /// `page` outlives this.
  SharedMetrics(const service::PageReader* page, uint32_t provider)
      : page_(page), provider_(provider) {}

  /// `state`: what was told of the provider.
  void start(uint32_t state) { told_state_ = state; }
  void tick(aon_core* core, const aon_core_api& api, uint64_t now_ns);

 private:
  struct Series {
    service::SeriesView view;
    uint32_t metric;
    uint64_t last_ticks = 0;
    service::SampleView base{};  ///< of a count: what it was when this began
    bool has_base = false;
  };

  void find_series(aon_core* core, const aon_core_api& api);
  bool read_samples(aon_core* core, const aon_core_api& api);
  void tell_state(aon_core* core, const aon_core_api& api, uint64_t now_ns, bool has_news);

  const service::PageReader* page_;
  uint32_t provider_;
  std::vector<Series> series_;
  uint32_t next_series_ = 0;
  bool is_first_ = true;
  bool is_over_ = false;
  uint64_t news_ns_ = 0;     ///< when a sample last was new
  uint32_t told_state_ = 0;  ///< aon_state
};

}  // namespace aon::agent
