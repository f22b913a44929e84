// What processes without an agent left: their ring files in a job directory, and what an agent saw
// that answered too late.

#include <aon/ring.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/lease.h"
#include "tests/unit/writers/ledger_law.h"
#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/assemble.h"
#include "writers/assemble/model.h"

namespace aon::writers {
namespace {

using nlohmann::json;
using test::expect_law;
using test::kRegions;
using test::NodeSpool;
using test::read_ledger;
using test::spans;
using test::TemporaryFolder;

/// A ring file as a process without an agent leaves it: `count` spans and one region.
void write_ring_file(const std::filesystem::path& path, uint32_t count, uint64_t refused) {
  const RingGeometry geometry = ring_geometry(8, 16);
  struct alignas(kPageBytes) Page {
    char bytes[kPageBytes];
  };
  std::vector<Page> memory(geometry.total_bytes / kPageBytes);
  char* base = memory.data()->bytes;
  auto* header = reinterpret_cast<RingHeader*>(base);
  header->magic = kRingMagic;
  header->abi = kRingAbi;
  header->slot_count = geometry.slot_count;
  header->chunk_count = geometry.chunk_count;
  header->modes_offset = geometry.modes_offset;
  header->slots_offset = geometry.slots_offset;
  header->free_map_offset = geometry.free_map_offset;
  header->chunks_offset = geometry.chunks_offset;
  header->total_bytes = geometry.total_bytes;
  header->identity.pid = 4242;
  header->identity.rank = 0;
  header->identity.world_size = 1;
  std::strcpy(header->identity.program, "/opt/app/alone");
  header->clock_first = {1, 1, test::kEpochNs + 1, 40};
  header->clock_last = {1'000'000'000, 1'000'000'000, test::kEpochNs + 1'000'000'000, 40};
  header->slots_used = 2;
  auto* slots = reinterpret_cast<ThreadSlot*>(base + geometry.slots_offset);
  for (uint32_t slot = 0; slot < geometry.slot_count; ++slot) {
    for (StreamState& stream : slots[slot].stream) stream.first_chunk = kNoChunk;
    slots[slot].counter_chunk = kNoChunk;
  }
  auto add_chunk = [&](uint32_t index, uint16_t slot, const std::vector<Record>& records) {
    char* chunk = base + geometry.chunks_offset + uint64_t{index} * kChunkBytes;
    auto* chunk_header = reinterpret_cast<ChunkHeader*>(chunk);
    chunk_header->next = kNoChunk;
    chunk_header->owner = stream_owner(slot, 0);
    uint64_t bytes = 0;
    uint64_t counted = 0;
    for (const Record& record : records) {
      const size_t record_bytes = record.head.slot_count * kSlotBytes;
      std::memcpy(chunk + sizeof(ChunkHeader) + bytes, &record, record_bytes);
      bytes += record_bytes;
      counted += is_counted(record.head.kind) ? 1 : 0;
    }
    chunk_header->committed = bytes | (counted << 32);
    slots[slot].stream[0].first_chunk = index;
  };
  Record definition{};
  definition.head.kind = RecordKind::kDefinition;
  definition.head.slot_count = 2;
  definition.head.id = static_cast<uint32_t>(DefinitionType::kRegion);
  const RegionDefinition region{1, RegionRole::kPointToPoint, Paradigm::kMpi, 0};
  std::memcpy(definition.words, &region, sizeof(region));
  std::memcpy(reinterpret_cast<char*>(definition.words) + sizeof(region), "MPI_Send", 9);
  definition.head.a32 = sizeof(region) + 9;
  add_chunk(0, 0, {definition});
  add_chunk(1, 1, spans(count));
  slots[1].tid = 4242;
  slots[1].stream[0].refused = refused;
  std::ofstream file(path, std::ios::binary);
  file.write(base, static_cast<std::streamsize>(geometry.total_bytes));
}

/// Its thread is in a call that began then.
void open_call(const std::filesystem::path& ring, uint64_t start_ticks) {
  const RingGeometry geometry = ring_geometry(8, 16);
  const struct {
    uint64_t start_ticks;
    uint32_t region;
  } call = {start_ticks, 1};
  std::fstream file(ring, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(geometry.slots_offset + sizeof(ThreadSlot) +
                                         offsetof(ThreadSlot, open)));
  file.write(reinterpret_cast<const char*>(&call), sizeof(call));
}

/// Of a process of node n1.
std::filesystem::path ring_place(const TemporaryFolder& job) {
  const std::filesystem::path node = job.path() / "spool" / "n1";
  std::filesystem::create_directories(node);
  return node / "fallback-4242-1.ring";
}

TEST(Assemble, tells_of_the_rings_that_cannot_be_read_where_there_is_nothing_else) {
  TemporaryFolder job;
  const std::filesystem::path node = job.path() / "spool" / local_host_name();
  std::filesystem::create_directories(node);
  std::ofstream(node / "fallback-4242-1.ring") << "cut off";
  const Result<AssembleReport> report = assemble(job.path());
  ASSERT_FALSE(report.has_value());
  EXPECT_NE(report.error().message.find("fallback-4242-1.ring is no ring"), std::string::npos)
      << report.error().message;
}

TEST(Assemble, leftover_ring_becomes_part_of_the_spool) {
  TemporaryFolder job;
  const std::filesystem::path ring = ring_place(job);
  write_ring_file(ring, 100, 7);
  for (int round = 0; round < 2; ++round) {
    const Result<AssembleReport> report = assemble(job.path());
    ASSERT_TRUE(report.has_value()) << report.error().message;
    EXPECT_FALSE(std::filesystem::exists(ring));
    const json ledger = read_ledger(job.path());
    expect_law(ledger);
    ASSERT_EQ(ledger["ranks"].size(), 1u);
    EXPECT_EQ(ledger["ranks"][0]["spooled"], 100);
    EXPECT_EQ(ledger["ranks"][0]["lost"], 7);
    EXPECT_EQ(ledger["ranks"][0]["program"], "/opt/app/alone");
    EXPECT_EQ(ledger["ranks"][0]["node"], "n1");
    EXPECT_EQ(ledger["ranks"][0]["fallback"], true);
    for (const char* name : {"perf", "process", "sampling"})
      EXPECT_EQ(ledger["ranks"][0]["providers"][name]["state"], "off") << name;
  }
  // Killed between the rename and the removal: the file is there again, the records are not twice.
  write_ring_file(ring, 100, 7);
  ASSERT_TRUE(assemble(job.path()).has_value());
  EXPECT_EQ(read_ledger(job.path())["ranks"].size(), 1u);
}

/// It began behind the last record: what the process hung in, and died.
TEST(Assemble, leftover_ring_tells_the_call_that_did_not_return) {
  constexpr uint64_t kImplausible = uint64_t{1} << 60;
  for (const uint64_t open_ticks : {uint64_t{5'000'000'000}, kImplausible}) {
    TemporaryFolder job;
    write_ring_file(ring_place(job), 100, 0);
    open_call(ring_place(job), open_ticks);
    ASSERT_TRUE(assemble(job.path()).has_value());
    const json ledger = read_ledger(job.path());
    expect_law(ledger);
    EXPECT_EQ(ledger["assembly"]["open_calls"], open_ticks == kImplausible ? 0 : 1);
  }
}

TEST(Assemble, says_of_a_ring_why_no_agent_took_its_process) {
  TemporaryFolder job;
  const std::filesystem::path ring = ring_place(job);
  write_ring_file(ring, 1, 0);
  const NoAgent reason = NoAgent::kOfAnotherUser;
  std::fstream file(ring, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(offsetof(RingHeader, identity) + offsetof(ProcessIdentity, no_agent));
  file.write(reinterpret_cast<const char*>(&reason), sizeof reason);
  file.close();
  ASSERT_TRUE(assemble(job.path()).has_value());
  const json perf = read_ledger(job.path())["ranks"][0]["providers"]["perf"];
  EXPECT_NE(perf.dump().find("another user's program listens"), std::string::npos) << perf.dump();
}

TEST(Assemble, what_an_agent_saw_that_answered_too_late_counts_once) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.attach_ticks = 1'000;
  node.add_process(3242, -1, 0, {});  // pid 4242, as that of the ring, and of its rank
  ProcessStartDefinition late{};
  late.process = 3242;
  late.pid = 4242;
  late.attach_ticks = 1'000;
  late.rank = 0;
  late.world_size = 1;
  node.define(3242, DefinitionType::kProcessStart, late, {"/opt/app/heat", "n1"});
  // The program before exec(), which the agent had.
  ProcessStartDefinition before{};
  before.process = 0;
  before.pid = 4242;
  before.attach_ticks = 1;
  before.rank = -1;
  node.define(0, DefinitionType::kProcessStart, before, {"/opt/app/starter", "n1"});
  node.add_records(0, 1, spans(1));
  node.add_exit(0, 100'000'000, -1, 0);
  node.define(3242, DefinitionType::kBinding, std::array<char, 4>{"2-3"});
  const ProviderDefinition on{ProviderState::kOn, {}};
  node.define(3242, DefinitionType::kProvider, on, {"process", "", ""});
  const ProviderDefinition off{ProviderState::kOff, {}};
  node.define(spool::kNodeProcess, DefinitionType::kProvider, off, {"perf", "in --without", ""});
  const MetricDefinition written{5, MetricMode::kAccumulated, 0, 0};
  node.define(3242, DefinitionType::kMetric, written, {"process::io-written", "By", "bytes"});
  node.add_records(3242, spool::kSeriesSlot, {test::sample_record(written.id, 1'500, 4096)});
  node.define(3242, DefinitionType::kStream, node.stream(3242, spool::kSeriesSlot));
  node.add_exit(3242, 900'000'000, 0, 0);  // with as much CPU time
  node.define(spool::kNodeProcess, DefinitionType::kUsage, UsageDefinition{});
  node.finish();
  write_ring_file(node.folder() / "fallback-4242-1.ring", 100, 0);
  ASSERT_TRUE(assemble(job.path()).has_value());
  const json ledger = read_ledger(job.path());
  expect_law(ledger);
  EXPECT_DOUBLE_EQ(ledger["overhead"]["ranks_cpu_s"], 0.9);
  ASSERT_EQ(ledger["ranks"].size(), 3u);
  EXPECT_EQ(ledger["ranks"][0]["fallback"], true);
  EXPECT_EQ(ledger["ranks"][0]["exit"]["code"], 0);
  EXPECT_FALSE(ledger["ranks"][0]["providers"].contains("process"));  // it was there
  EXPECT_FALSE(ledger["ranks"][0]["providers"].contains("perf"));     // nobody wanted it
  EXPECT_EQ(ledger["ranks"][0]["providers"]["sampling"]["state"], "off");
  EXPECT_EQ(ledger["ranks"][0]["rank"], 0);
  EXPECT_FALSE(ledger["ranks"][1].contains("late_answer"));
  EXPECT_EQ(ledger["ranks"][2]["late_answer"], true);
  EXPECT_FALSE(ledger["ranks"][2].contains("followed_since")) << "it has said Hello";
  EXPECT_TRUE(ledger["ranks"][2]["rank"].is_null());
  for (uint32_t row = 0; row < 3; ++row) EXPECT_EQ(ledger["ranks"][row]["process"], row);
  const auto parts = build_model(job.path(), kDefaultOtf2Locations);
  ASSERT_TRUE(parts.has_value());
  EXPECT_EQ((*parts)->model.groups[0].process->binding, "2-3");
}

/// The only process of its node.
TEST(Assemble, what_an_agent_measured_stays_where_it_answered_too_late) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.attach_ticks = 1'000;
  node.add_process(3242, -1, 0, {});  // pid 4242, as that of the ring
  MetricDefinition package{};
  package.id = 0x80000002;
  package.node_wide = 1;
  node.define(spool::kNodeProcess, DefinitionType::kMetric, package,
              {"energy::package-0", "J", "energy"});
  node.add_records(
      spool::kNodeProcess, spool::kSeriesSlot,
      {test::sample_record(package.id, 1'000, 0), test::sample_record(package.id, 2'000, 7.5)});
  node.finish();
  write_ring_file(node.folder() / "fallback-4242-1.ring", 100, 0);
  ASSERT_TRUE(assemble(job.path()).has_value());
  const json ledger = read_ledger(job.path());
  expect_law(ledger);
  EXPECT_EQ(ledger["ranks"][0]["fallback"], true);
  EXPECT_EQ(ledger["energy"]["joules"], 7.5);
}

TEST(Assemble, an_end_that_a_late_agent_saw_is_told_once) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(3242, -1, 0, {});  // pid 4242, as that of the ring
  node.add_records(3242, spool::kSeriesSlot, {test::sample_record(5, 1'500, 4096)});
  node.define(3242, DefinitionType::kStream, node.stream(3242, spool::kSeriesSlot));
  node.add_exit(3242, 900'000'000, -1, 9);
  node.finish();
  write_ring_file(node.folder() / "fallback-4242-1.ring", 100, 0);
  ASSERT_TRUE(assemble(job.path()).has_value());
  const json ledger = read_ledger(job.path());
  EXPECT_EQ(ledger["job"]["incomplete_ranks"], json::array({0}));
  EXPECT_EQ(ledger["job"]["incomplete_processes"], json::array());
}

TEST(Assemble, processes_without_room_for_a_ring_are_told) {
  TemporaryFolder job;
  const std::filesystem::path node = job.path() / "spool" / "n1";
  std::filesystem::create_directories(node);
  write_ring_file(node / "fallback-4242-1.ring", 100, 0);
  std::ofstream(node / "unrecorded") << "11";
  std::filesystem::create_symlink("unrecorded", node / "unrecorded-77-123");
  for (int round = 0; round < 2; ++round) {
    const Result<AssembleReport> report = assemble(job.path());
    ASSERT_TRUE(report.has_value()) << report.error().message;
    EXPECT_THAT(report->warnings,
                testing::ElementsAre(testing::HasSubstr("3 processes on n1 could have neither")));
  }
}

TEST(Assemble, ring_of_a_running_process_is_left_alone) {
  TemporaryFolder job;
  NodeSpool spool(job.path(), local_host_name());
  spool.add_process(0, 0, 1, kRegions);
  spool.add_records(0, 1, spans(1));
  spool.finish();
  const std::filesystem::path ring = job.path() / "spool" / local_host_name() / "fallback-1-1.ring";
  write_ring_file(ring, 10, 0);
  std::fstream file(ring, std::ios::in | std::ios::out | std::ios::binary);
  ProcessIdentity identity{};
  identity.pid = getpid();
  identity.rank = -1;
  identity.start_time_ticks = process_start_time_ticks(getpid());
  file.seekp(offsetof(RingHeader, identity));
  file.write(reinterpret_cast<const char*>(&identity), sizeof(identity));
  file.close();
  const Result<AssembleReport> report = assemble(job.path());
  ASSERT_TRUE(report.has_value());
  EXPECT_THAT(report->warnings, testing::ElementsAre(testing::HasSubstr("still runs")));
  EXPECT_TRUE(std::filesystem::exists(ring));
}

}  // namespace
}  // namespace aon::writers
