/// The waits that were found, in order, summed up and read again.
/// Thread: one.   Cost: that of SortedStore.   Errors: kIo.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "writers/waits/match.h"
#include "writers/waits/waiting_calls.h"

namespace aon::writers {

class FoundWaits {
 public:
  explicit FoundWaits(const std::filesystem::path& folder) : store_(folder, kStoreBytes) {}

  Status add(const Wait& wait) { return store_.add(wait); }
  /// By location, region and kind. Nothing is added any more.
  Result<std::vector<WaitRow>> sum_up(const std::function<void()>& beat);
  Result<std::unique_ptr<CallWaits>> read_calls();
  /// As CallWaits::next() of one reader.
  Result<std::optional<CallWait>> next_call(uint32_t location);

 private:
  SortedStore<Wait> store_;
  std::unique_ptr<CallWaits> calls_;
};

}  // namespace aon::writers
