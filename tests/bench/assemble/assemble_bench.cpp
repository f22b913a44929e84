// bench_assemble RECORDS LOCATIONS [OTF2_LOCATIONS [SHARES]]: writes a spool of RECORDS MPI calls
// on LOCATIONS threads (at most 1000 per rank; with SHARES one, and these in a ring), assembles it
// and prints events per second and the peak resident size of that; with SHARES of the combiner
// alone. Each is done by a child, so that the one's memory does not count for the other. Everything
// lies in a temporary folder and goes at the end.
// bench_assemble nccl OPERATIONS RANKS [SHARES]: the same of operations of NCCL whose kernels CUPTI
// told; a share's peak counts where it is larger than the combiner's.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/bench/assemble/nccl_spool.h"
#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/assemble.h"

namespace {

using namespace aon;

constexpr uint32_t kThreadsPerRank = 1000;
constexpr uint64_t kRecordsPerCall = 65536;

/// Sends and receives in turns, every eighth call an Allreduce, as an iterative solver would.
std::vector<Record> calls(uint64_t count, uint64_t* now, int32_t to, int32_t from) {
  std::vector<Record> records;
  records.reserve(count);
  for (uint64_t i = 0; i < count; ++i, *now += 1000 + i % 97) {
    if (i % 8 == 7) {
      records.push_back(test::collective_record(3, *now, *now + 400 + i % 31,
                                                CollectiveOperation::kAllreduce, -1, 8));
    } else {
      const bool is_send = i % 2 == 0;
      records.push_back(test::message_record(is_send ? 1 : 2, *now, *now + 300 + i % 53,
                                             is_send ? kOutgoing : kIncoming, is_send ? to : from,
                                             7, 1024 * (i % 3)));
    }
  }
  return records;
}

void write_spool(const std::filesystem::path& job, uint64_t record_count, uint32_t locations,
                 uint32_t threads_per_rank) {
  const uint32_t rank_count = (locations + threads_per_rank - 1) / threads_per_rank;
  test::NodeSpool node(job, "bench", 60);
  for (uint32_t rank = 0; rank < rank_count; ++rank) {
    node.add_process(rank, static_cast<int32_t>(rank), rank_count,
                     {{"MPI_Send", RegionRole::kPointToPoint},
                      {"MPI_Recv", RegionRole::kPointToPoint},
                      {"MPI_Allreduce", RegionRole::kAllToAll}});
  }
  for (uint32_t location = 0; location < locations; ++location) {
    uint64_t now = 1000;
    const uint32_t rank = location / threads_per_rank;
    const auto slot = static_cast<uint16_t>(1 + location % threads_per_rank);
    const auto to = static_cast<int32_t>((rank + 1) % rank_count);
    const auto from = static_cast<int32_t>((rank + rank_count - 1) % rank_count);
    for (uint64_t left = record_count / locations; left != 0;) {
      const uint64_t part = std::min(left, kRecordsPerCall);
      node.add_records(rank, slot, calls(part, &now, to, from));
      left -= part;
    }
  }
  node.finish();
}

int assemble_and_report(const std::filesystem::path& job, uint32_t otf2_locations,
                        uint32_t share_count) {
  writers::AssembleOptions options;
  options.otf2_locations = otf2_locations;
  options.disk_cap_bytes = uint64_t{1} << 40;
  options.share_count = share_count;
  const Result<writers::AssembleReport> report = writers::assemble(job, options);
  if (!report) {
    std::fprintf(stderr, "bench_assemble: %s\n", report.error().message.c_str());
    return 1;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double cpu_s = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                       static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
  const auto events = static_cast<double>(report->outcome.event_count);
  rusage of_shares{};
  getrusage(RUSAGE_CHILDREN, &of_shares);
  std::printf(
      "%.0f events, %.2f s, %.2f s CPU, %.2f M events/s wall, %.2f M events/s CPU, "
      "peak %ld MiB, archive %.1f MiB, peak of a share %ld MiB\n",
      events, report->seconds, cpu_s, events / report->seconds * 1e-6, events / cpu_s * 1e-6,
      usage.ru_maxrss / 1024, static_cast<double>(report->archive_bytes) / (1 << 20),
      of_shares.ru_maxrss / 1024);
  return 0;
}

/// Runs `work` in a child process; its exit code.
template <class Work>
int in_child(Work work) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    const int code = work();
    std::fflush(stdout);
    _exit(code);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/// `nccl OPERATIONS RANKS [SHARES]`
int of_nccl(int argc, char** argv) {
  const uint64_t count = std::strtoull(argv[2], nullptr, 10);
  const auto ranks = static_cast<uint32_t>(std::strtoul(argv[3], nullptr, 10));
  const uint32_t shares = argc > 4 ? static_cast<uint32_t>(std::strtoul(argv[4], nullptr, 10)) : 1;
  const test::TemporaryFolder job;
  const int written = in_child([&] {
    bench::write_nccl_spool(job.path(), count, ranks);
    return 0;
  });
  if (written != 0) return written;
  return in_child(
      [&] { return assemble_and_report(job.path(), writers::kDefaultOtf2Locations, shares); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 3 && std::strcmp(argv[1], "nccl") == 0) return of_nccl(argc, argv);
  if (argc < 3) {
    std::fprintf(stderr,
                 "usage: bench_assemble RECORDS LOCATIONS [OTF2_LOCATIONS [SHARES]]\n"
                 "       bench_assemble nccl OPERATIONS RANKS [SHARES]\n");
    return 2;
  }
  const uint64_t records = std::strtoull(argv[1], nullptr, 10);
  const auto locations = static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10));
  const uint32_t limit = argc > 3 ? static_cast<uint32_t>(std::strtoul(argv[3], nullptr, 10))
                                  : writers::kDefaultOtf2Locations;
  const uint32_t shares = argc > 4 ? static_cast<uint32_t>(std::strtoul(argv[4], nullptr, 10)) : 1;
  const test::TemporaryFolder job;
  const int written = in_child([&] {
    write_spool(job.path(), records, locations, shares > 1 ? 1 : kThreadsPerRank);
    return 0;
  });
  if (written != 0) return written;
  return in_child([&] { return assemble_and_report(job.path(), limit, shares); });
}
