/// Samples of a series stream in time order: some providers hand them on a moment after others that
/// were taken later, as what reads a GPU waits for its driver. Held back are the newest kWindow.
/// Owner: the assembler.   Thread: one.   Cost: at most 2 kWindow records (16 MiB), a sort.
#pragma once

#include <aon/record.h>

#include <cstddef>
#include <span>
#include <vector>

namespace aon::writers {

class SampleSorter {
 public:
  static constexpr size_t kWindow = 65536;

  void add(std::span<const Record> records);
  /// What nothing that comes later precedes, as far as kWindow reaches; all of it at the end.
  std::vector<Record> take(bool is_end);

 private:
  std::vector<Record> records_;
};

}  // namespace aon::writers
