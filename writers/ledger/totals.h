/// What the node metrics come to in the end: joules and errors of GPUs of each node, bytes of each
/// process. The last sample of an accumulated metric is its total.
///
/// Fed by the samples as they pass by, as a Writer; the ledger takes the results.
/// Owner: the assembler.   Thread: one.   Cost: a look-up in a small table per sample; nothing for
/// other events.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "writers/writer.h"

namespace aon::writers {

/// Energy of one node between the first and the last sample, whoever used it; samples that were
/// lost have been, too.
struct NodeEnergy {
  std::map<std::string, double> domains_j;  ///< "package-0", "dram-0" ...
  uint64_t first_ns = 0;
  uint64_t last_ns = 0;

  bool has_samples() const { return !domains_j.empty(); }
  /// A counter that never counts tells nothing.
  bool is_known() const { return joules() > 0; }
  /// Packages and their memory, or else the platform: no joule is in two of these.
  double joules() const;
  /// They are the platform's.
  bool is_of_platform() const;
  double seconds() const { return static_cast<double>(last_ns - first_ns) * 1e-9; }
};

/// Bytes of one process, by the name of the metric: "io-read", "storage-written" ...
using ProcessBytes = std::map<std::string, double>;

/// Samples of counters by the provider that took them.
using SampleCounts = std::map<std::string, uint64_t>;

/// Errors of GPUs that the driver reported (Xid events), as "Xid 79 of GPU-...": how often.
using GpuErrors = std::map<std::string, uint64_t>;

struct MetricTotals {
  std::vector<NodeEnergy> energy;   ///< by node
  std::vector<ProcessBytes> bytes;  ///< by location group
  std::vector<SampleCounts> node_samples;
  std::vector<SampleCounts> group_samples;
  std::vector<GpuErrors> gpu_errors;  ///< by node
};

class TotalsCollector final : public Writer {
 public:
  Status begin(const Model& model) override;
  Status begin_location(const Location& location) override;
  Status events(std::span<const Event> events) override;
  Status end_location() override;
  Status finish(const Outcome& outcome) override;
  Status save(StateOut* out) override;
  Status load(StateIn* in) override;

  /// Valid after finish().
  const MetricTotals& totals() const { return totals_; }

 private:
  enum class Kind : uint8_t { kOther, kEnergy, kBytes, kXid };
  struct Metric {
    Kind kind = Kind::kOther;
    std::string name;  ///< without the provider's
    std::string provider;
  };

  void add(const Event& sample, const Metric& metric);

  const Model* model_ = nullptr;
  const Location* location_ = nullptr;
  std::optional<uint32_t> unsaved_;      ///< the last group that began since save()
  std::vector<Metric> metrics_;          ///< by global id
  std::vector<uint64_t> sample_counts_;  ///< of the location, by global id
  uint64_t lost_since_ns_ = UINT64_MAX;  ///< of the location: samples are missing from then on
  MetricTotals totals_;
};

}  // namespace aon::writers
