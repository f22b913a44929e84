/// What is asked of each GPU besides GPM (gpm.h), and how often: a table. A query that fails is
/// judged by faults.h; it never takes others with it.
/// Thread: the poller's.   Cost: 10 us to some ms per query under the driver's lock, which launches
/// of kernels may wait for; pcie takes 40 ms, in which the driver counts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nvml/interface.h"
#include "nvml/library.h"

namespace aon::nvml {

/// Name, unit (UCUM) and description of a series of each GPU. What is read together has one folder.
struct SeriesText {
  const char* name;
  const char* unit;
  const char* description;
};

/// What one reading of one GPU gave.
struct Value {
  const SeriesText* series;
  bool is_count;  ///< `raw` is a counter of the driver's, `number` its scale
  uint64_t raw;
  double number;
};

class Values {
 public:
  void value(const SeriesText& series, double number) {
    list_.push_back({&series, false, 0, number});
  }
  void count(const SeriesText& series, uint64_t raw, double scale = 1) {
    list_.push_back({&series, true, raw, scale});
  }
  std::vector<Value> take() { return std::move(list_); }
  bool empty() const { return list_.empty(); }

 private:
  std::vector<Value> list_;
};

/// What is asked together: GPM; what changes; what takes long; what changes once in a lifetime.
enum class Pace { kGpm, kOften, kPcie, kSeldom };
constexpr uint32_t kPaceCount = 4;
constexpr uint32_t kPeriodMs[kPaceCount] = {100, 1000, 5000, 10'000};

/// Of whom: whole GPUs, those that GPM does not tell it of, parts of GPUs (MIG) as well.
enum class Asks { kGpus, kGpusWithoutGpm, kEverything };

struct Query {
  const char* name;  ///< in the ledger
  Asks asks;
  Pace pace;
  /// NVML's code; kFunctionNotFound where the library is too old.
  uint32_t (*read)(const Functions&, Handle, Values*);
};

std::span<const Query> queries();

}  // namespace aon::nvml
