#include "writers/waits/found_waits.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace aon::writers {

Result<std::vector<WaitRow>> FoundWaits::sum_up(const std::function<void()>& beat) {
  Result<SortedStore<Wait>::Reader> reader = store_.read();
  if (!reader) return reader.error();
  WaitingCalls calls(std::move(*reader));
  std::map<std::tuple<uint32_t, uint32_t, WaitKind>, WaitRow> rows;
  for (;;) {
    beat();
    Result<std::optional<Wait>> call = calls.next();
    if (!call) return call.error();
    if (!*call) break;
    const Wait& wait = **call;
    WaitRow& row = rows.try_emplace({wait.location, wait.region, wait.kind},
                                    WaitRow{wait.location, wait.region, wait.kind})
                       .first->second;
    row.is_polled = wait.is_polled;
    ++row.count;
    row.wait_ns += wait.wait_ns;
    row.max_ns = std::max(row.max_ns, wait.wait_ns);
    row.uncertain_ns += std::min(wait.wait_ns, wait.clock_error_ns);
  }
  std::vector<WaitRow> all;
  all.reserve(rows.size());
  for (const auto& [key, row] : rows) all.push_back(row);
  return all;
}

Result<std::unique_ptr<CallWaits>> FoundWaits::read_calls() {
  Result<SortedStore<Wait>::Reader> reader = store_.read();
  if (!reader) return reader.error();
  return std::unique_ptr<CallWaits>(std::make_unique<CallWaitReader>(std::move(*reader)));
}

Result<std::optional<CallWait>> FoundWaits::next_call(uint32_t location) {
  if (!calls_) {
    Result<std::unique_ptr<CallWaits>> calls = read_calls();
    if (!calls) return calls.error();
    calls_ = std::move(*calls);
  }
  return calls_->next(location);
}

}  // namespace aon::writers
