/// What an agent reads of the node's service (page.h). The connection is kept: it tells the service
/// that somebody reads, and this end when the service is gone.
///
/// Trusted is a socket in a folder that only root, or this user, can have made (a folder of the
/// service's own user below a folder of root counts: systemd's RuntimeDirectory). Of the page every
/// index and string is bounded; a page that could shrink under us is refused.
/// Thread: one.   Cost: connecting at most kAnswerMs; a sample some loads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/unique_fd.h"
#include "core/service/crash_log.h"
#include "core/service/page.h"

namespace aon::service {

constexpr int kAnswerMs = 200;

struct ProviderView {
  uint32_t index;
  uint32_t state;  ///< aon_state
  std::string reason;
  std::string remedy;
};
struct SeriesView {
  uint32_t index;
  uint32_t mode;  ///< aon_metric_mode
  std::string name;
  std::string unit;
  std::string description;
};
struct SampleView {
  uint64_t ticks;
  double value;
  uint64_t enabled_ns;
  uint64_t running_ns;
};

class PageReader {
 public:
  /// $AON_NODE_SOCKET, or kSocketPath.
  static std::string socket_path();
  /// Errors: kNotFound (no service runs), kUnavailable with what is wrong.
  static Result<std::unique_ptr<PageReader>> connect(const std::string& socket_path);
  ~PageReader();
  PageReader(const PageReader&) = delete;
  PageReader& operator=(const PageReader&) = delete;

  /// False: the service has ended; the page stays as it was.
  bool is_alive() const;
  bool clock_is_tsc() const { return page_->clock_is_tsc != 0; }

  /// Names of all providers.
  std::vector<std::string> providers() const;
  std::optional<ProviderView> provider(const std::string& name) const;
  /// aon_state of a provider, now.
  uint32_t state(uint32_t provider) const;
  /// Series `first` and on of a provider; those that came since the last time have higher numbers.
  std::vector<SeriesView> series(uint32_t provider, uint32_t first) const;
  /// Nothing yet: no value.
  std::optional<SampleView> sample(uint32_t series) const;

  /// Whether the service reads the kernel's log.
  bool has_log() const;
  /// Crashes that the service has read there since the last call.
  std::vector<Crash> crashes();

 private:
  PageReader(UniqueFd connection, const Page* page);

  UniqueFd connection_;
  const Page* page_;
  uint32_t crash_count_;  ///< seen
};

}  // namespace aon::service
