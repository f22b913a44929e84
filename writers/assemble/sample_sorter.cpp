#include "writers/assemble/sample_sorter.h"

#include <algorithm>

namespace aon::writers {

void SampleSorter::add(std::span<const Record> records) {
  records_.insert(records_.end(), records.begin(), records.end());
}

std::vector<Record> SampleSorter::take(bool is_end) {
  if (!is_end && records_.size() < 2 * kWindow) return {};
  std::stable_sort(records_.begin(), records_.end(), [](const Record& a, const Record& b) {
    return a.head.start_ticks < b.head.start_ticks;
  });
  const size_t count = is_end ? records_.size() : records_.size() - kWindow;
  const auto end = records_.begin() + static_cast<ptrdiff_t>(count);
  std::vector<Record> ready(records_.begin(), end);
  records_.erase(records_.begin(), end);
  return ready;
}

}  // namespace aon::writers
