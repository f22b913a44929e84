/// What NCCL's proxies moved for whom and what they waited for: the rows of /nccl/proxy, one per
/// communicator, process, peer and direction.
///
/// Waits are those of steps, of which several of an operation are under way at a time: they may add
/// up to more than the time. Without steps (level net) only bytes that are planned are known.
/// The limit of rows holds for all that a share saves, as in operations.h.
/// Thread: one.   Cost: a look-up per record; memory for kMaxRows rows.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>

#include "writers/profile/local_ids.h"
#include "writers/writer.h"

namespace aon::writers::nccl {

struct ProxyRow {
  uint64_t operation_count = 0;  ///< operations times channels, that were over
  uint64_t step_count = 0;
  uint64_t planned_step_count = 0;
  uint64_t bytes = 0;  ///< told by steps
  uint64_t time_ns = 0;
  uint64_t gpu_ns = 0;
  uint64_t peer_ns = 0;
  uint64_t network_ns = 0;
  uint64_t flush_ns = 0;
  uint64_t longest_step_ns = 0;
  uint64_t network_event_count = 0;
  uint64_t record_count = 0;
};

/// Communicator (global), group, peer, whether it sends.
using ProxyKey = std::tuple<uint32_t, uint32_t, int32_t, bool>;

class ProxyTable {
 public:
  static constexpr size_t kMaxRows = 1u << 19;

  /// The work that follows is that of `group`.
  void begin(const Group& group);
  void add(const NcclProxyWork& work);

  const std::map<ProxyKey, ProxyRow>& rows() const { return rows_; }
  uint64_t left_out_count() const { return left_out_count_; }

  void save(StateOut* out);
  Status load(const Model& model, StateIn* in);

 private:
  /// The row of `key`; null, and its records are left out, where there is no room for another.
  ProxyRow* row_of(const ProxyKey& key, uint64_t record_count);

  const Group* group_ = nullptr;
  profile::LocalIds communicators_;
  std::map<ProxyKey, ProxyRow> rows_;
  size_t kept_count_ = 0;  ///< rows, saved ones as well
  uint64_t left_out_count_ = 0;
};

}  // namespace aon::writers::nccl
