/// Writes small job directories for tests: definitions and record blocks as the agent would,
/// without an agent. Ticks are nanoseconds (one clock pairing per second at 1 tick = 1 ns),
/// REALTIME is kEpochNs ahead of them.
#pragma once

#include <aon/definition.h>
#include <aon/record.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/spool/block_writer.h"
#include "core/spool/format.h"
#include "tests/unit/temporary_folder.h"

namespace aon::test {

constexpr uint64_t kEpochNs = 1'700'000'000'000'000'000;

/// For the shell. It clears 180 MiB of tables when it starts: a third of the time in large pages.
constexpr char kOtf2Print[] = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1 timeout 60 otf2-print ";

// Records, as the shims write them.
Record span_record(uint32_t region, uint64_t start, uint64_t end, uint16_t flags = 0);
Record message_record(uint32_t region, uint64_t start, uint64_t end, uint16_t flags, int32_t peer,
                      int32_t tag, uint64_t bytes, uint64_t request = 0, uint32_t comm = 0);
Record completion_record(uint64_t time, uint16_t flags, int32_t peer, int32_t tag, uint64_t bytes,
                         uint64_t request, uint32_t comm = 0);
Record collective_record(uint32_t region, uint64_t start, uint64_t end,
                         CollectiveOperation operation, int32_t root, uint64_t bytes,
                         uint16_t flags = 0, uint64_t request = 0, uint32_t comm = 0);
Record rma_record(uint32_t region, uint64_t start, uint64_t end, RmaOperation operation,
                  int32_t target, uint64_t bytes = 0, uint64_t bytes_back = 0,
                  uint64_t request_or_group = 0, uint16_t flags = 0, uint32_t window = 5);
/// A call on a file.
Record io_record(uint32_t region, uint64_t start, uint64_t end, IoOperation operation,
                 uint32_t io_flags, uint64_t bytes_asked, uint64_t bytes, uint64_t request,
                 uint32_t file = 1, uint64_t offset = kUnknownOffset, uint16_t flags = 0);
Record io_completion_record(uint64_t time, uint16_t flags, IoOperation operation, uint64_t bytes,
                            uint64_t request, uint32_t file = 1);
/// An operation of NCCL with root -2, algorithm ring, protocol ll and type float32.
Record nccl_record(uint32_t region, uint64_t start, uint64_t end, uint32_t flags, uint64_t bytes,
                   uint32_t comm = 0);
Record begin_record(uint32_t region, uint64_t time);
Record end_record(uint32_t region, uint64_t time);
Record mark_record(uint32_t region, uint64_t time, ValueType type, uint64_t value,
                   std::initializer_list<uint64_t> words = {});
Record sample_record(uint32_t metric, uint64_t time, double value);
Record lost_record(LossReason reason, uint64_t start, uint64_t end, uint64_t count,
                   uint32_t ended_regions = 0, uint32_t begun_regions = 0);
Record thread_record(uint64_t time, uint32_t tid, bool starts);

/// A node's clock: what its crystal counts in ns, and what it takes for the time.
struct SpoolClock {
  uint64_t first_ticks = 1;
  double drift = 0;  ///< of the crystal, ns per ns
  int64_t realtime_ahead_ns = 0;

  uint64_t ticks(uint64_t time_ns) const {
    return first_ticks + time_ns +
           static_cast<uint64_t>(static_cast<int64_t>(static_cast<double>(time_ns) * drift));
  }
};

/// The spool folder of one node.
class NodeSpool {
 public:
  NodeSpool(const std::filesystem::path& job, const std::string& host, uint64_t seconds = 3,
            const SpoolClock& clock = {});

  /// Adds a process with world and self communicators (local ids 0 and 1) and regions 1.. from
  /// `regions`: name and role, paradigm MPI where the name begins with "MPI_".
  void add_process(uint32_t process, int32_t rank, uint32_t world,
                   const std::vector<std::pair<std::string, RegionRole>>& regions);
  void add_exit(uint32_t process, uint64_t end_ticks, int32_t exit_code, int32_t signal);
  template <class T>
  void define(uint32_t process, DefinitionType type, const T& payload,
              std::initializer_list<std::string_view> strings = {}) {
    definitions_[process].add(type, payload, strings);
  }

  /// Appends `records` to the stream as blocks. Counts go on from the last call, after a gap of
  /// `skipped` records.
  void add_records(uint32_t process, uint16_t slot, const std::vector<Record>& records,
                   uint16_t context = 0, uint64_t skipped = 0);

  const std::filesystem::path& folder() const { return folder_; }

  /// Writes a kStream definition for every stream (`committed` as written) and all definitions.
  void finish();

  /// Path of the segment of `process`.
  std::filesystem::path segment(uint32_t process) const;
  StreamDefinition& stream(uint32_t process, uint16_t slot, uint16_t context = 0);

  uint64_t attach_ticks = 1;  ///< of processes that are added from now on

 private:
  void append(const std::filesystem::path& path, const std::vector<uint8_t>& bytes);

  std::filesystem::path folder_;
  std::map<uint32_t, spool::DefinitionBlockWriter> definitions_;
  std::map<std::tuple<uint32_t, uint16_t, uint16_t>, StreamDefinition> streams_;
  std::map<std::tuple<uint32_t, uint16_t>, spool::OpenStack> stacks_;
  std::map<uint32_t, uint64_t> block_sequence_;
  spool::RecordBlockWriter writer_;
};

}  // namespace aon::test
