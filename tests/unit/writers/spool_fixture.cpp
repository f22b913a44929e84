#include "tests/unit/writers/spool_fixture.h"

#include <aon/nccl.h>

#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <fstream>

#include "core/spool/files.h"

namespace aon::test {
namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;

/// Sets `record`'s times, with a wide duration (and a slot more) where the narrow field is too
/// small. Record sizes here are those without the wide word.
void set_times(Record* record, uint64_t start, uint64_t end) {
  const uint64_t duration = end - start;
  record->head.start_ticks = start;
  record->head.duration_ticks = static_cast<uint32_t>(duration);
  if (duration <= UINT32_MAX) return;
  record->head.flags |= kWideDuration;
  ++record->head.slot_count;
  record->words[(record->head.slot_count - 1u) * 4u - 1u] = duration;
}

Record make(RecordKind kind, uint8_t slot_count, uint16_t flags, uint32_t id) {
  Record record{};
  record.head.kind = kind;
  record.head.slot_count = slot_count;
  record.head.flags = flags;
  record.head.id = id;
  return record;
}

}  // namespace

Record span_record(uint32_t region, uint64_t start, uint64_t end, uint16_t flags) {
  Record record = make(RecordKind::kSpan, 1, flags, region);
  set_times(&record, start, end);
  return record;
}

Record nccl_record(uint32_t region, uint64_t start, uint64_t end, uint32_t flags, uint64_t bytes,
                   uint32_t comm) {
  Record record = make(RecordKind::kNcclCall, kNcclSlots, 0, region);
  set_times(&record, start, end);
  record.head.a32 = comm;
  record.head.a64 = bytes;
  record.words[0] = 17;
  record.words[1] = uint64_t{2} << 32 | uint64_t{2} << 40 | uint64_t{1} << 48 | uint64_t{8} << 56;
  record.words[1] |= 5;
  record.words[2] = start + 1;
  record.words[3] = start + 2;
  record.words[4] = 6;
  record.words[5] = pack_pair(kNoPeer, static_cast<int32_t>(flags));
  record.words[6] = 1;
  return record;
}

Record message_record(uint32_t region, uint64_t start, uint64_t end, uint16_t flags, int32_t peer,
                      int32_t tag, uint64_t bytes, uint64_t request, uint32_t comm) {
  Record record = make(RecordKind::kMessage, 2, flags, region);
  record.head.a32 = comm;
  record.head.a64 = bytes;
  record.words[0] = pack_pair(peer, tag);
  record.words[1] = request;
  set_times(&record, start, end);
  return record;
}

Record completion_record(uint64_t time, uint16_t flags, int32_t peer, int32_t tag, uint64_t bytes,
                         uint64_t request, uint32_t comm) {
  Record record = make(RecordKind::kCompletion, 2, flags, 0);
  record.head.start_ticks = time;
  record.head.a32 = comm;
  record.head.a64 = bytes;
  record.words[0] = pack_pair(peer, tag);
  record.words[1] = request;
  return record;
}

Record collective_record(uint32_t region, uint64_t start, uint64_t end,
                         CollectiveOperation operation, int32_t root, uint64_t bytes,
                         uint16_t flags, uint64_t request, uint32_t comm) {
  Record record = make(RecordKind::kCollective, 2, flags, region);
  record.head.a32 = comm;
  record.head.a64 = bytes;
  record.words[0] = bytes;
  record.words[1] = pack_pair(root, static_cast<int32_t>(operation));
  record.words[2] = request;
  set_times(&record, start, end);
  return record;
}

Record rma_record(uint32_t region, uint64_t start, uint64_t end, RmaOperation operation,
                  int32_t target, uint64_t bytes, uint64_t bytes_back, uint64_t request_or_group,
                  uint16_t flags, uint32_t window) {
  Record record = make(RecordKind::kRma, 2, flags, region);
  record.head.a32 = window;
  record.head.a64 = bytes;
  record.words[0] = pack_pair(target, static_cast<int32_t>(operation));
  record.words[1] = bytes_back;
  record.words[2] = request_or_group;
  set_times(&record, start, end);
  return record;
}

Record io_record(uint32_t region, uint64_t start, uint64_t end, IoOperation operation,
                 uint32_t io_flags, uint64_t bytes_asked, uint64_t bytes, uint64_t request,
                 uint32_t file, uint64_t offset, uint16_t flags) {
  Record record = make(RecordKind::kIo, 2, flags, region);
  record.head.a32 = file;
  record.head.a64 = bytes;
  record.words[0] = pack_pair(static_cast<int32_t>(operation), static_cast<int32_t>(io_flags));
  record.words[1] = offset;
  record.words[2] = request;
  record.words[3] = bytes_asked;
  set_times(&record, start, end);
  return record;
}

Record io_completion_record(uint64_t time, uint16_t flags, IoOperation operation, uint64_t bytes,
                            uint64_t request, uint32_t file) {
  Record record = completion_record(time, flags, static_cast<int32_t>(operation),
                                    static_cast<int32_t>(kIoNonblocking), bytes, request, file);
  record.head.id = static_cast<uint32_t>(RecordKind::kIo);
  return record;
}

Record begin_record(uint32_t region, uint64_t time) {
  Record record = make(RecordKind::kBegin, 1, 0, region);
  record.head.start_ticks = time;
  return record;
}

Record end_record(uint32_t region, uint64_t time) {
  Record record = make(RecordKind::kEnd, 1, 0, region);
  record.head.start_ticks = time;
  return record;
}

Record mark_record(uint32_t region, uint64_t time, ValueType type, uint64_t value,
                   std::initializer_list<uint64_t> words) {
  Record record = make(RecordKind::kMark, words.size() == 0 ? 1 : 2, 0, region);
  record.head.start_ticks = time;
  record.head.a32 = static_cast<uint32_t>(type);
  record.head.a64 = value;
  std::copy(words.begin(), words.end(), record.words);
  return record;
}

Record sample_record(uint32_t metric, uint64_t time, double value) {
  Record record = make(RecordKind::kSample, 2, 0, metric);
  record.head.start_ticks = time;
  record.head.a64 = std::bit_cast<uint64_t>(value);
  return record;
}

Record lost_record(LossReason reason, uint64_t start, uint64_t end, uint64_t count,
                   uint32_t ended_regions, uint32_t begun_regions) {
  Record record = make(RecordKind::kLost, 1, 0, static_cast<uint32_t>(reason));
  record.head.a32 = pack_lost_regions(ended_regions, begun_regions);
  record.head.a64 = count;
  set_times(&record, start, end);
  return record;
}

Record thread_record(uint64_t time, uint32_t tid, bool starts) {
  Record record = make(RecordKind::kThread, 1, 0, tid);
  record.head.start_ticks = time;
  record.head.a64 = starts ? 1 : 0;
  return record;
}

NodeSpool::NodeSpool(const std::filesystem::path& job, const std::string& host, uint64_t seconds,
                     const SpoolClock& clock)
    : folder_(job / "spool" / host) {
  std::filesystem::create_directories(folder_);
  spool::DefinitionBlockWriter& node = definitions_[spool::kNodeProcess];
  NodeDefinition definition{};
  definition.format = spool::kSpoolFormat;
  definition.budget_millipercent = 1000;
  definition.disk_cap_bytes = uint64_t{1} << 30;
  node.add(DefinitionType::kNode, definition, {host, "test-launch"});
  for (uint64_t second = 0; second <= seconds; ++second) {
    ClockDefinition pairing{};
    pairing.ticks = clock.ticks(second * kNsPerSecond);
    pairing.monotonic_raw_ns = pairing.ticks;
    pairing.realtime_ns =
        kEpochNs + 1 + second * kNsPerSecond + static_cast<uint64_t>(clock.realtime_ahead_ns);
    pairing.bracket_ticks = 40;
    node.add(DefinitionType::kClock, pairing);
  }
}

void NodeSpool::add_process(uint32_t process, int32_t rank, uint32_t world,
                            const std::vector<std::pair<std::string, RegionRole>>& regions) {
  spool::DefinitionBlockWriter& out = definitions_[process];
  ProcessStartDefinition start{};
  start.process = process;
  start.pid = 1000 + static_cast<int32_t>(process);
  start.attach_ticks = attach_ticks;
  start.rank = rank;
  start.world_size = world;
  out.add(DefinitionType::kProcessStart, start, {"/opt/app/solver", folder_.filename().string()});
  uint32_t id = 1;
  for (const auto& [name, role] : regions) {
    const bool is_mpi = name.rfind("MPI_", 0) == 0;
    out.add(DefinitionType::kRegion,
            RegionDefinition{id++, role, is_mpi ? Paradigm::kMpi : Paradigm::kUser, 0}, {name});
  }
  if (rank < 0) return;
  out.add(DefinitionType::kIdentity, IdentityDefinition{rank, world, 1, 0});
  CommunicatorDefinition communicator{};
  communicator.identity = 77;
  communicator.size = world;
  communicator.rank = static_cast<uint32_t>(rank);
  communicator.kind = CommunicatorKind::kWorld;
  out.add(DefinitionType::kCommunicator, communicator, {"MPI_COMM_WORLD"});
  communicator.id = 1;
  communicator.identity = 1;
  communicator.size = 1;
  communicator.rank = 0;
  communicator.kind = CommunicatorKind::kSelf;
  out.add(DefinitionType::kCommunicator, communicator, {"MPI_COMM_SELF"});
}

void NodeSpool::add_exit(uint32_t process, uint64_t end_ticks, int32_t exit_code, int32_t signal) {
  ProcessExitDefinition exit{};
  exit.process = process;
  exit.exit_code = exit_code;
  exit.signal = signal;
  exit.end_ticks = end_ticks;
  exit.cpu_time_ns = end_ticks;
  define(process, DefinitionType::kProcessExit, exit);
}

StreamDefinition& NodeSpool::stream(uint32_t process, uint16_t slot, uint16_t context) {
  StreamDefinition& stream = streams_[{process, slot, context}];
  stream.process = process;
  stream.slot = slot;
  stream.context = context;
  stream.tid = 1000 + static_cast<int32_t>(process) + slot - 1;
  stream.thread_count = 1;
  return stream;
}

std::filesystem::path NodeSpool::segment(uint32_t process) const {
  return folder_ / spool::segment_file_name({process, std::nullopt, 0});
}

void NodeSpool::append(const std::filesystem::path& path, const std::vector<uint8_t>& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::app);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

void NodeSpool::add_records(uint32_t process, uint16_t slot, const std::vector<Record>& records,
                            uint16_t context, uint64_t skipped) {
  std::vector<uint8_t> bytes;
  for (const Record& record : records) {
    const auto* first = reinterpret_cast<const uint8_t*>(&record);
    bytes.insert(bytes.end(), first, first + record.head.slot_count * kSlotBytes);
  }
  StreamDefinition& state = stream(process, slot, context);
  state.committed += skipped;
  std::span<const uint8_t> rest = bytes;
  std::vector<uint8_t> out;
  spool::OpenStack* stack = context == 0 ? &stacks_[{process, slot}] : nullptr;
  while (!rest.empty()) {
    writer_.begin(process, slot, context, state.committed, stack);
    bool is_refused = false;
    const size_t taken = writer_.add(rest, &is_refused);
    ASSERT_GT(taken, 0u);
    ASSERT_FALSE(is_refused);
    rest = rest.subspan(taken);
    Result<spool::BlockHeader> header = writer_.seal(block_sequence_[process]++, &out);
    ASSERT_TRUE(header.has_value());
    state.committed += header->counted_count;
  }
  append(segment(process), out);
}

void NodeSpool::finish() {
  for (const auto& [key, stream] : streams_) {
    if (stream.slot == spool::kSeriesSlot) continue;
    definitions_[stream.process].add(DefinitionType::kStream, stream);
  }
  spool::BlockSealer sealer;
  std::vector<uint8_t> out;
  uint64_t sequence = 0;
  for (auto& [process, writer] : definitions_) {
    ASSERT_TRUE(writer.seal(&sealer, process, sequence++, 1, &out).has_value());
  }
  append(folder_ / spool::kDefinitionsFile, out);
}

}  // namespace aon::test
