// Reads a job directory back and prints one line per process and one per loss reason:
//   process P pid N exit C signal S decoded D committed C refused R cut X lost L
// Exit 1 when a stream is out of order or a number occurs twice, or when the sums do not meet:
// decoded + lost = committed + refused + cut.
#include <cinttypes>
#include <cstdio>
#include <set>

#include "core/spool/job.h"
#include "core/spool/process_index.h"
#include "core/spool/stream_reader.h"

namespace {

using aon::LossReason;

struct Sums {
  uint64_t decoded = 0;
  uint64_t committed = 0;
  uint64_t refused = 0;
  uint64_t cut = 0;
  uint64_t lost[aon::kLossReasonCount] = {};
  bool is_ordered = true;
};

void read_stream(const aon::spool::ProcessIndex& index, const aon::spool::Process& process,
                 uint16_t slot, Sums* sums) {
  aon::spool::StreamReader reader(index, &process, slot);
  uint64_t last = 0;
  for (;;) {
    auto batch = reader.next();
    if (!batch || batch->records.empty()) break;
    for (const aon::Record& record : batch->records) {
      if (!aon::is_counted(record.head.kind)) continue;
      ++sums->decoded;
      if (record.head.kind != aon::RecordKind::kMark) continue;
      // Threads that share a slot start their numbers again.
      if (record.head.a64 <= last && record.head.a64 != 1) sums->is_ordered = false;
      last = record.head.a64;
    }
  }
  for (uint32_t i = 0; i < aon::kLossReasonCount; ++i) sums->lost[i] += reader.losses().count[i];
}

Sums read_process(const aon::spool::ProcessIndex& index, const aon::spool::Process& process) {
  Sums sums;
  for (const auto& [key, stream] : process.streams) {
    if (aon::spool::is_agent_slot(key.first)) continue;
    sums.committed += stream.committed;
    sums.refused += stream.refused;
    sums.cut += stream.stream_cut;
  }
  // Of a stream that lost everything there is no block.
  const auto with_blocks = index.slots();
  std::set<uint16_t> slots(with_blocks.begin(), with_blocks.end());
  for (const auto& [key, stream] : process.streams) slots.insert(key.first);
  for (uint16_t slot : slots) {
    if (!aon::spool::is_agent_slot(slot)) read_stream(index, process, slot, &sums);
  }
  sums.lost[static_cast<size_t>(LossReason::kPoolFull)] += sums.refused;
  sums.lost[static_cast<size_t>(LossReason::kStreamCut)] += sums.cut;
  return sums;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto job = aon::spool::read_job(argv[1]);
  if (!job) {
    std::fprintf(stderr, "%s\n", job.error().message.c_str());
    return 1;
  }
  bool is_good = job->damaged_blocks == 0;
  for (const auto& node : job->nodes) {
    const auto segments = aon::spool::list_segments(node.folder);
    for (const auto& [number, process] : node.processes) {
      const auto found = segments->find(number);
      auto index = aon::spool::ProcessIndex::build(
          node.folder, number,
          found == segments->end() ? std::vector<aon::spool::SegmentName>{} : found->second);
      if (!index) return 1;
      const Sums sums = read_process(*index, process);
      uint64_t lost = 0;
      for (uint64_t one : sums.lost) lost += one;
      std::printf("process %u pid %d exit %d signal %d decoded %" PRIu64 " committed %" PRIu64
                  " refused %" PRIu64 " cut %" PRIu64 " lost %" PRIu64 "\n",
                  number, process.start.pid, process.exit ? process.exit->exit_code : -2,
                  process.exit ? process.exit->signal : -2, sums.decoded, sums.committed,
                  sums.refused, sums.cut, lost);
      for (uint32_t i = 0; i < aon::kLossReasonCount; ++i) {
        if (sums.lost[i] != 0)
          std::printf("loss %u %s %" PRIu64 "\n", number,
                      aon::loss_reason_name(static_cast<LossReason>(i)), sums.lost[i]);
      }
      if (!sums.is_ordered) std::printf("process %u: records out of order\n", number);
      is_good = is_good && sums.is_ordered &&
                sums.decoded + lost == sums.committed + sums.refused + sums.cut;
    }
    if (node.usage)
      std::printf("usage agent_cpu_ns %" PRIu64 " ranks_cpu_ns %" PRIu64 " rings %" PRIu64
                  " staging %" PRIu64 " resident %" PRIu64 " disk %" PRIu64 "\n",
                  node.usage->agent_cpu_ns, node.usage->ranks_cpu_ns, node.usage->segment_bytes,
                  node.usage->staging_bytes, node.usage->agent_resident_bytes,
                  node.usage->disk_used_bytes);
  }
  if (job->damaged_blocks != 0) std::printf("damaged blocks %" PRIu64 "\n", job->damaged_blocks);
  return is_good ? 0 : 1;
}
