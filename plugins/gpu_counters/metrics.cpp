#include "gpu_counters/metrics.h"

#include <limits>

namespace aon::gpu_counters {
namespace {

constexpr size_t kCoreCount = 13;

/// The first kCoreCount are the core.
constexpr Metric kMetrics[] = {
    {"gr__cycles_active.avg.pct_of_peak_sustained_elapsed", Formula::kPercent, "graphics-active",
     "1", "share of time in which the graphics and compute engine worked"},
    {"sm__cycles_active.avg.pct_of_peak_sustained_elapsed", Formula::kPercent, "sm-active", "1",
     "multiprocessors with work, of all, mean over time"},
    {"sm__inst_executed_realtime.avg.pct_of_peak_sustained_elapsed", Formula::kPercent,
     "issue-active", "1", "instructions executed, of the most there can be"},
    {"sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed", Formula::kPercent,
     "tensor-active", "1", "use of the tensor pipes"},
    {"sm__warps_active_realtime.avg.pct_of_peak_sustained_elapsed", Formula::kPercent,
     "sm-occupancy", "1", "warps on the multiprocessors, of the most there can be"},
    {"dram__read_throughput.avg.pct_of_peak_sustained_elapsed", Formula::kPercent,
     "dram-read-active", "1", "reading, of the memory's bandwidth"},
    {"dram__write_throughput.avg.pct_of_peak_sustained_elapsed", Formula::kPercent,
     "dram-write-active", "1", "writing, of the memory's bandwidth"},
    {"nvlrx__bytes.sum", Formula::kPerSecond, "nvlink-received-rate", "By/s",
     "received over all NVLinks, protocol included"},
    {"nvltx__bytes.sum", Formula::kPerSecond, "nvlink-sent-rate", "By/s",
     "sent over all NVLinks, protocol included"},
    {"gpc__cycles_elapsed.avg.per_second", Formula::kAsItIs, "clock-gpc", "Hz",
     "clock of the multiprocessors"},
    {"sys__cycles_elapsed.avg.per_second", Formula::kAsItIs, "clock-sys", "Hz",
     "clock of the front end"},
    {"pcie__read_bytes.sum", Formula::kPerSecond, "pcie-received-rate", "By/s",
     "read over PCIe by the GPU"},
    {"pcie__write_bytes.sum", Formula::kPerSecond, "pcie-sent-rate", "By/s",
     "written over PCIe by the GPU"},
    // wide
    {"TPC.TriageCompute.sm__pipe_tensor_op_hmma_cycles_active_realtime"
     ".avg.pct_of_peak_sustained_elapsed",
     Formula::kPercent, "tensor-hmma-active", "1", "tensor pipes: fp16, bf16, tf32 and fp8"},
    {"TPC.TriageCompute.sm__pipe_tensor_op_imma_cycles_active_realtime"
     ".avg.pct_of_peak_sustained_elapsed",
     Formula::kPercent, "tensor-imma-active", "1", "tensor pipes: integers"},
    {"TPC.TriageCompute.sm__pipe_fp64_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed",
     Formula::kPercent, "fp64-active", "1", "use of the fp64 pipes"},
    {"TPC.TriageCompute.sm__inst_executed_pipe_fma_realtime.avg.pct_of_peak_sustained_elapsed",
     Formula::kPercent, "fma-active", "1", "instructions of the fp32 pipes, of the most"},
    {"TPC.TriageCompute.sm__inst_executed_pipe_alu_realtime.avg.pct_of_peak_sustained_elapsed",
     Formula::kPercent, "alu-active", "1", "instructions of the integer pipes, of the most"},
    {"tpc__warps_inactive_sm_active_realtime.avg.pct_of_peak_sustained_elapsed", Formula::kPercent,
     "warps-unused-sm-active", "1", "free places for warps on multiprocessors that have work"},
    {"tpc__warps_inactive_sm_idle_realtime.avg.pct_of_peak_sustained_elapsed", Formula::kPercent,
     "warps-unused-sm-idle", "1", "free places for warps on multiprocessors without work"},
    {"gr__ctas_launched_realtime.sum", Formula::kPerSecond, "block-rate", "1/s",
     "thread blocks launched"},
    {"gr__dispatch_count.sum", Formula::kPerSecond, "grid-rate", "1/s", "grids dispatched"},
    {"LTS.TriageCompute.lts__throughput.avg.pct_of_peak_sustained_elapsed", Formula::kPercent,
     "l2-active", "1", "use of the level 2 cache's bandwidth"},
    {"LTS.TriageCompute.lts__average_t_sector_hit_rate_realtime.pct", Formula::kPercent,
     "l2-hit-rate", "1", "hits of the level 2 cache, of all look-ups"},
    {"gpu__engine_cycles_active_any_syncce.avg.pct_of_peak_sustained_elapsed", Formula::kPercent,
     "copy-sync-active", "1", "copy engines that serve the graphics engine's queue"},
    {"gpu__scheduler_engine_asyncce0_cycles_active.avg.pct_of_peak_sustained_elapsed",
     Formula::kPercent, "copy-async-active", "1", "copy engine of its own queue"},
    {"FE_A.TriageCompute.gr__compute_cycles_active_queue_sync.avg.pct_of_peak_sustained_elapsed",
     Formula::kPercent, "compute-queue-sync-active", "1", "compute work of the synchronous queue"},
    {"FE_A.TriageCompute.gr__compute_cycles_active_queue_async.avg.pct_of_peak_sustained_elapsed",
     Formula::kPercent, "compute-queue-async-active", "1",
     "compute work of the asynchronous queue"},
    {"FE_A.TriageCompute.gpu__gr_cycles_active_cmd_ctxsw.avg.pct_of_peak_sustained_elapsed",
     Formula::kPercent, "context-switch-active", "1", "switching between contexts"},
};

}  // namespace

std::span<const Metric> metric_set(std::string_view name) {
  const std::span<const Metric> all(kMetrics);
  if (name == "core" || name == "burst") return all.first(kCoreCount);
  return name == "wide" ? all : std::span<const Metric>();
}

double value_of(Formula formula, double value, uint64_t duration_ns) {
  switch (formula) {
    case Formula::kPercent:
      return value / 100;
    case Formula::kPerSecond:
      if (duration_ns == 0) return std::numeric_limits<double>::quiet_NaN();
      return value * 1e9 / static_cast<double>(duration_ns);
    case Formula::kAsItIs:
      break;
  }
  return value;
}

}  // namespace aon::gpu_counters
