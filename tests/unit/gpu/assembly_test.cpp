// A job whose process had devices: from its spool to the model and the files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/unit/writers/otf2_print.h"
#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/assemble.h"
#include "writers/assemble/model.h"
#include "writers/otf2/otf2_writer.h"

namespace aon::writers {
namespace {

using test::NodeSpool;
using test::TemporaryFolder;

constexpr uint32_t kKernel = 40;

Record kernel(uint32_t stream, uint64_t start, uint64_t end) {
  Record record{};
  record.head.start_ticks = start;
  record.head.duration_ticks = static_cast<uint32_t>(end - start);
  record.head.kind = RecordKind::kDeviceSpan;
  record.head.slot_count = 2;
  record.head.id = kKernel;
  record.head.a32 = stream;
  return record;
}

/// One rank with a device, two streams and a row of the host; the records are those of thread 2.
void add_gpu_rank(NodeSpool* node) {
  node->add_process(0, 0, 1, {{"MPI_Send", RegionRole::kPointToPoint}});
  node->define(0, DefinitionType::kRegion,
               RegionDefinition{kKernel, RegionRole::kFunction, Paradigm::kCuda, 0},
               {"_Z4gemmPfi"});
  node->define(0, DefinitionType::kDevice, DeviceDefinition{1, 0, {9}}, {"Some GPU", "0000:01"});
  node->define(0, DefinitionType::kDeviceStream, DeviceStreamDefinition{1, 1, 2, 7}, {""});
  node->define(0, DefinitionType::kDeviceStream, DeviceStreamDefinition{2, kNoDevice, 0, 4711},
               {"CUDA calls"});
  node->define(0, DefinitionType::kDeviceStream, DeviceStreamDefinition{3, 1, 2, 8}, {""});
  node->add_records(0, 1, {test::span_record(1, 1000, 2000)});
  node->add_records(0, 2,
                    {kernel(3, 5000, 6000), kernel(1, 3000, 3500), kernel(2, 2900, 2950),
                     kernel(1, 2000, 2500), kernel(9, 2000, 2500)});
  node->finish();
}

TEST(Assembly, makes_a_location_of_each_stream_behind_the_threads) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  add_gpu_rank(&node);
  const auto parts = build_model(job.path(), kDefaultOtf2Locations);
  ASSERT_TRUE(parts.has_value());
  std::vector<std::string> names;
  std::vector<uint64_t> ids;
  for (const Location& location : (*parts)->model.locations) {
    names.push_back(location.name);
    ids.push_back(location.id >> 32);
  }
  EXPECT_THAT(names, testing::ElementsAre("Master thread", "Thread 1", "CUDA[1:7]",
                                          "CUDA calls of thread 4711", "CUDA[1:8]"));
  EXPECT_THAT(ids, testing::ElementsAre(0, 1, 2, 3, 4));
  const Location& stream = (*parts)->model.locations[2];
  EXPECT_EQ(stream.type, LocationType::kAcceleratorStream);
  EXPECT_EQ(stream.device, 1u);
  EXPECT_EQ((*parts)->model.locations[3].device, kNoDevice);
  EXPECT_EQ((*parts)->job.nodes[0].processes.at(0).devices.at(1).name, "Some GPU");
}

TEST(Assembly, streams_stay_in_a_small_archive) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  add_gpu_rank(&node);
  const auto parts = build_model(job.path(), 2);
  ASSERT_TRUE(parts.has_value());
  std::vector<bool> in_archive;
  for (const Location& location : (*parts)->model.locations) {
    in_archive.push_back(location.in_archive);
  }
  EXPECT_THAT(in_archive, testing::ElementsAre(true, false, true, false, true));
}

TEST(Assembly, kernels_have_the_names_of_their_authors) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  add_gpu_rank(&node);
  const auto parts = build_model(job.path(), kDefaultOtf2Locations);
  ASSERT_TRUE(parts.has_value());
  const Model& model = (*parts)->model;
  EXPECT_EQ(model.regions[model.groups[0].region_map.at(kKernel)].name, "gemm(float*, int)");
}

TEST(Assembly, the_law_is_about_the_thread_that_wrote) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  add_gpu_rank(&node);
  const auto report = assemble(job.path(), {});
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->outcome.unplaced_device_count, 1u);
  std::ifstream file(job.path() / "aon.json");
  const auto ledger = nlohmann::json::parse(file);
  const auto& threads = ledger["ranks"][0]["threads"];
  ASSERT_EQ(threads.size(), 2u);
  EXPECT_EQ(threads[1]["emitted"], 5u);
  EXPECT_EQ(threads[1]["spooled"], 5u);
  EXPECT_TRUE(std::filesystem::exists(job.path() / "profile.h5"));
  EXPECT_TRUE(std::filesystem::exists(job.path() / "traces.otf2"));
}

TEST(Assembly, sorting_the_work_of_devices_keeps_below_the_disk_cap) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  add_gpu_rank(&node);
  AssembleOptions options;
  options.disk_cap_bytes = 1;  // no room at all, but memory
  const auto report = assemble(job.path(), options);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->outcome.unplaced_device_count, 1u);
  for (const std::string& warning : report->warnings) {
    EXPECT_EQ(warning.find("left out"), std::string::npos) << warning;
  }
}

/// In the archive of two streams; the first was at work all the time that the gap lasted.
TEST(Assembly, work_that_was_left_out_stands_where_it_has_a_count) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  add_gpu_rank(&node);
  const auto parts = build_model(job.path(), kDefaultOtf2Locations);
  ASSERT_TRUE(parts.has_value());
  const Model& model = (*parts)->model;
  Event gap{};
  gap.time_ns = model.start_ns;
  gap.kind = EventKind::kDeviceGap;
  gap.region = kUnknownRegion;
  gap.request = model.start_ns + 100;
  const auto writer = make_otf2_writer(job.path());
  ASSERT_TRUE(writer->begin(model));
  for (const Location& location : model.locations) {
    gap.bytes = location.device_stream == 1 ? 3 : 0;
    gap.bytes_received = gap.bytes == 0 ? 100 : 0;
    ASSERT_TRUE(writer->begin_location(location));
    if (location.device_stream != 0) {
      ASSERT_TRUE(writer->events({&gap, 1}));
    }
    ASSERT_TRUE(writer->end_location());
  }
  ASSERT_TRUE(writer->finish({}));
  const std::string text = test::print_archive(job.path());
  const size_t enter = text.find("Region: \"[lost: evicted by cap]\"");
  ASSERT_NE(enter, std::string::npos) << text;
  EXPECT_NE(text.find("(\"lost\" <0>; UINT64; 3)", enter), std::string::npos) << text;
  EXPECT_EQ(text.find("(\"lost\" <0>; UINT64; 0)"), std::string::npos) << text;
}

}  // namespace
}  // namespace aon::writers
