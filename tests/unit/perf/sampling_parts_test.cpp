#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "plugins/perf/sampling/call_tree.h"
#include "plugins/perf/sampling/event.h"
#include "plugins/perf/sampling/ring.h"
#include "plugins/perf/sampling/time_map.h"
#include "tests/unit/perf/fake_kernel.h"
#include "tests/unit/perf/ring_writer.h"

namespace aon::perf {
namespace {

using test::fake;
using test::fake_kernel;
using test::RingWriter;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr size_t kPageBytes = 4096;

struct Ring {
  explicit Ring(size_t page = kPageBytes) : page_bytes(page) {}

  size_t page_bytes;
  std::vector<uint64_t> words = std::vector<uint64_t>(2 * page_bytes / 8);
  RingWriter writer{words.data(), kPageBytes, page_bytes};
  SampleRing ring{words.data(), ring_data_bytes(kPageBytes, page_bytes), page_bytes};

  std::vector<uint32_t> drain() {
    std::vector<uint32_t> types;
    ring.drain([&](const perf_event_header& header, auto) { types.push_back(header.type); });
    return types;
  }
};

TEST(SamplingRing, reads_each_record_once_and_gives_room_back) {
  Ring r;
  r.writer.sample(5, 100, {1, 2});
  r.writer.lost(3);
  EXPECT_THAT(r.drain(), ElementsAre(PERF_RECORD_SAMPLE, PERF_RECORD_LOST));
  EXPECT_THAT(r.drain(), ElementsAre());
}

TEST(SamplingRing, joins_records_over_the_end_of_the_ring) {
  Ring r;
  const std::vector<uint64_t> frames(40, 0x1234);
  for (int i = 0; i < 100; ++i) {
    r.writer.sample(5, static_cast<uint64_t>(i), frames);
    RawSample sample;
    r.ring.drain([&](const perf_event_header&, std::span<const uint8_t> body) {
      ASSERT_TRUE(parse_sample(body, SampleTail::kNothing, &sample));
    });
    EXPECT_EQ(sample.time_ns, static_cast<uint64_t>(i));
    EXPECT_EQ(sample.frames, frames);
  }
}

TEST(SamplingRing, has_data_behind_a_page_however_large_that_is) {
  Ring r(65536);
  r.writer.sample(5, 100, {1, 2});
  EXPECT_THAT(r.drain(), ElementsAre(PERF_RECORD_SAMPLE));
  EXPECT_EQ(ring_data_bytes(32768, 4096), 32768u);
  EXPECT_EQ(ring_data_bytes(32768, 65536), 65536u) << "without a page nothing is recorded";
}

TEST(SamplingRing, stops_at_a_record_that_cannot_be) {
  Ring r;
  r.writer.put(PERF_RECORD_SAMPLE, {});
  auto* header = reinterpret_cast<perf_event_header*>(r.words.data() + 512);
  header->size = 3;
  EXPECT_THAT(r.drain(), ElementsAre());
  r.writer.lost(1);
  EXPECT_THAT(r.drain(), ElementsAre(PERF_RECORD_LOST));
}

TEST(SamplingRing, frames_are_addresses_without_markers) {
  RawSample sample;
  const auto body = RingWriter::sample_body(9, 77, {10, 20, 30}, 5);
  ASSERT_TRUE(parse_sample(body, SampleTail::kNothing, &sample));
  EXPECT_EQ(sample.tid, 9);
  EXPECT_EQ(sample.time_ns, 77u);
  EXPECT_EQ(sample.period, 5u);
  EXPECT_THAT(sample.frames, ElementsAre(10u, 20u, 30u));
}

TEST(SamplingRing, a_chain_longer_than_its_record_is_refused) {
  auto body = RingWriter::sample_body(9, 77, {10, 20, 30}, 5);
  body.resize(body.size() - 8);
  RawSample sample;
  EXPECT_FALSE(parse_sample(body, SampleTail::kNothing, &sample));
}

TEST(SamplingRing, branch_records_of_calls_give_the_callers) {
  auto body = RingWriter::sample_body(9, 77, {10}, 5);
  RingWriter::append(&body, uint64_t{2});
  for (const uint64_t from : {200ull, 300ull}) {
    perf_branch_entry entry{};
    entry.from = from;
    entry.to = 1;
    RingWriter::append(&body, entry);
  }
  RawSample sample;
  ASSERT_TRUE(parse_sample(body, SampleTail::kBranches, &sample));
  EXPECT_THAT(sample.frames, ElementsAre(10u, 201u, 301u));
}

Mappings mappings_of(const std::vector<RawMapping>& list) {
  Mappings mappings(
      1, 50, "", [](const std::string& path) { return "id" + path; },
      [](uint64_t, uint64_t) { return std::string(); });
  for (const RawMapping& mapping : list) mappings.add(mapping);
  return mappings;
}

TEST(SamplingMappings, gives_the_offset_in_the_file) {
  Mappings mappings = mappings_of({{0x1000, 0x2000, 0x400, 1, "/a"}, {0x5000, 0x6000, 0, 2, "/b"}});
  const auto place = mappings.find(0x1010);
  EXPECT_EQ(place.mapping, 50u);
  EXPECT_EQ(place.offset, 0x410u);
  EXPECT_EQ(mappings.find(0x5000).mapping, 51u);
  EXPECT_EQ(mappings.find(0x3000).mapping, kNoMapping);
  const auto used = mappings.take_used();
  ASSERT_EQ(used.size(), 2u);
  EXPECT_EQ(used[0].path, "/a");
  EXPECT_EQ(used[0].definition.build_id_bytes, 4);
  EXPECT_TRUE(mappings.take_used().empty());
}

TEST(SamplingMappings, memory_of_no_file_keeps_its_address) {
  Mappings mappings = mappings_of({{0x1000, 0x2000, 0, 0, "//anon"}, {0x3000, 0x4000, 0, 0, ""}});
  EXPECT_EQ(mappings.find(0x1010).mapping, kNoMapping);
  EXPECT_EQ(mappings.find(0x1010).offset, 0x1010u);
  EXPECT_EQ(mappings.find(0x3010).offset, 0x3010u);
}

TEST(SamplingMappings, what_is_mapped_later_replaces_what_was_there) {
  Mappings mappings = mappings_of({{0x1000, 0x3000, 0, 1, "/a"}});
  EXPECT_EQ(mappings.find(0x1800).mapping, 50u);
  EXPECT_FALSE(mappings.add({0x1000, 0x3000, 0, 1, "/a"})) << "the same again";
  EXPECT_TRUE(mappings.add({0x1000, 0x2000, 0, 2, "/b"}));
  EXPECT_EQ(mappings.find(0x1800).mapping, 51u);
  EXPECT_EQ(mappings.find(0x2800).offset, 0x1800u) << "the rest of /a is still there";
  EXPECT_TRUE(mappings.add({0x1000, 0x2000, 0, 3, "/b"})) << "another file of the same name";
}

TEST(SamplingMappings, memory_that_was_asked_for_too_early_is_asked_for_again) {
  Mappings mappings = mappings_of({});
  EXPECT_EQ(mappings.find(0x1800).mapping, kNoMapping);
  EXPECT_TRUE(mappings.add({0x1000, 0x3000, 0, 1, "/a"}));
  EXPECT_FALSE(mappings.add({0x8000, 0x9000, 0, 1, "/b"}));
}

TEST(SamplingMappings, what_is_no_longer_mapped_is_forgotten) {
  Mappings mappings = mappings_of({{0x1000, 0x2000, 0, 1, "/a"}, {0x5000, 0x6000, 0, 2, "/b"}});
  EXPECT_FALSE(mappings.replace({{0x1000, 0x2000, 0, 1, "/a"}, {0x5000, 0x6000, 0, 2, "/b"}}));
  EXPECT_TRUE(mappings.replace({{0x1000, 0x2000, 0, 1, "/a"}}));
  EXPECT_FALSE(mappings.is_code(0x5800));
  EXPECT_TRUE(mappings.is_code(0x1800));
}

TEST(SamplingMappings, a_file_that_was_replaced_before_its_first_sample_has_no_build_id) {
  const std::map<uint64_t, std::string> now = {{0x1000, "/a (deleted)"}, {0x5000, "/b"}};
  Mappings mappings(
      1, 50, "", [](const std::string& path) { return "id" + path; },
      [&](uint64_t start, uint64_t) { return now.at(start); });
  mappings.add({0x1000, 0x2000, 0, 1, "/a"});
  mappings.add({0x5000, 0x6000, 0, 2, "/b"});
  mappings.find(0x1010);
  mappings.find(0x5010);
  const auto used = mappings.take_used();
  ASSERT_EQ(used.size(), 2u);
  EXPECT_EQ(used[0].path, "/a (deleted)");
  EXPECT_EQ(used[0].definition.build_id_bytes, 0);
  EXPECT_EQ(used[1].path, "/b");
  EXPECT_EQ(used[1].definition.build_id_bytes, 4);
}

TEST(SamplingMappings, a_name_that_their_list_escapes_is_the_files) {
  Mappings mappings(
      1, 50, "", [](const std::string&) { return std::string(); },
      [](uint64_t, uint64_t) { return std::string("/a\nb"); });
  mappings.add({0x1000, 0x2000, 0, 1, "/a\\012b"});
  mappings.find(0x1010);
  const auto used = mappings.take_used();
  ASSERT_EQ(used.size(), 1u);
  EXPECT_EQ(used[0].path, "/a\nb");
}

TEST(SamplingMappings, asks_the_kernel_what_became_of_a_file) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  const std::string path = folder / ("aon-mapped-" + std::to_string(getpid()));
  std::ofstream(path) << std::string(4096, 'x');
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  void* page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  ASSERT_NE(page, MAP_FAILED);
  const auto start = reinterpret_cast<uint64_t>(page);
  EXPECT_EQ(read_mapped_path(getpid(), start, start + 4096), path);
  std::filesystem::remove(path);
  EXPECT_EQ(read_mapped_path(getpid(), start, start + 4096), path + " (deleted)");
  EXPECT_EQ(read_mapped_path(getpid(), start, start + 8192), "") << "no such range";
  munmap(page, 4096);
}

TEST(SamplingMappings, reads_proc_maps) {
  const auto maps = parse_maps(
      "00400000-00401000 r--p 00000000 08:01 12 /bin/a b\n"
      "00401000-00402000 r-xp 00001000 08:01 12                         /bin/a b\n"
      "7fff0000-7fff1000 r-xp 00000000 00:00 0                          [vdso]\n"
      "7ffe0000-7ffe1000 r-xp 00000000 00:00 0 \n"
      "nonsense\n");
  ASSERT_EQ(maps.size(), 3u);
  EXPECT_EQ(maps[0].path, "/bin/a b");
  EXPECT_EQ(maps[0].start, 0x401000u);
  EXPECT_EQ(maps[0].file_offset, 0x1000u);
  EXPECT_EQ(maps[0].inode, 12u);
  EXPECT_EQ(maps[1].path, "[vdso]");
  EXPECT_EQ(maps[2].path, "");
}

TEST(SamplingMappings, build_ids_of_files_that_have_none) {
  EXPECT_EQ(read_build_id("/proc/self/exe").size(), 20u);
  EXPECT_EQ(read_build_id("/etc/passwd"), "");
  EXPECT_EQ(read_build_id("/nowhere"), "");
  EXPECT_EQ(read_build_id("/tmp"), "");
  EXPECT_EQ(read_build_id("/dev/zero"), "");
}

TEST(SamplingMappings, the_kernel_s_own_library_has_a_build_id) {
  if (getauxval(AT_SYSINFO_EHDR) == 0) GTEST_SKIP() << "no vdso here";
  EXPECT_EQ(read_vdso_build_id().size(), 20u);
  Mappings mappings = mappings_of({{0x1000, 0x3000, 0, 0, "[vdso]"}});
  mappings.find(0x1800);
  const auto used = mappings.take_used();
  ASSERT_EQ(used.size(), 1u);
  EXPECT_EQ(used[0].definition.build_id_bytes, 20u);
}

TEST(SamplingCallTree, a_path_is_written_once) {
  Mappings mappings = mappings_of({{0, 0x10000, 0, 1, "/a"}});
  CallTree tree(1000);
  const std::vector<uint64_t> path = {0x10, 0x21, 0x31};
  const uint32_t id = tree.intern(path, &mappings);
  EXPECT_EQ(tree.intern(path, &mappings), id);
  const CallTree::Fresh fresh = tree.take_fresh();
  EXPECT_EQ(fresh.first_id, 1000u);
  ASSERT_EQ(fresh.nodes.size(), 3u);
  EXPECT_EQ(fresh.nodes[0].parent, kNoCallPath);
  EXPECT_EQ(fresh.nodes[0].offset, 0x30u) << "a caller is looked up before its return address";
  EXPECT_EQ(fresh.nodes[1].parent, 1000u);
  EXPECT_EQ(fresh.nodes[2].offset, 0x10u);
  EXPECT_EQ(id, 1002u);
  EXPECT_TRUE(tree.take_fresh().nodes.empty());
}

TEST(SamplingCallTree, a_chain_that_leaves_code_ends_there) {
  Mappings mappings = mappings_of({{0x1000, 0x2000, 0, 1, "/a"}});
  CallTree tree(0);
  tree.intern(std::vector<uint64_t>{0x1010, 0x1020, 0x77, 0x1030}, &mappings);
  EXPECT_EQ(tree.take_fresh().nodes.size(), 2u);
  tree.intern(std::vector<uint64_t>{0x99, 0x98}, &mappings);
  EXPECT_EQ(tree.take_fresh().nodes.size(), 1u) << "the thread itself was there";
}

TEST(SamplingCallTree, shares_callers) {
  Mappings mappings = mappings_of({{0, 0x10000, 0, 1, "/a"}});
  CallTree tree(0);
  tree.intern(std::vector<uint64_t>{1, 5}, &mappings);
  tree.intern(std::vector<uint64_t>{2, 5}, &mappings);
  EXPECT_EQ(tree.take_fresh().nodes.size(), 3u);
}

TEST(SamplingCallTree, a_full_tree_cuts_paths_at_what_is_known) {
  Mappings mappings = mappings_of({{0, ~0ull, 0, 1, "/a"}});
  CallTree tree(0);
  for (uint64_t i = 0; i < kMaxNodesPerProcess; ++i)
    tree.intern(std::vector<uint64_t>{i}, &mappings);
  EXPECT_FALSE(tree.is_full());
  EXPECT_EQ(tree.intern(std::vector<uint64_t>{1, 6}, &mappings), 5u);
  EXPECT_TRUE(tree.is_full());
  EXPECT_EQ(tree.intern(std::vector<uint64_t>{~0ull - 9}, &mappings), kNoCallPath);
}

/// As a compiler at run time does, which asks for memory again and again.
TEST(SamplingCallTree, a_path_is_known_again_after_a_change_of_mappings) {
  Mappings mappings = mappings_of({{0, 0x10000, 0, 1, "/a"}, {0x20000, 0x30000, 0, 0, ""}});
  CallTree tree(0);
  const std::vector<uint64_t> path = {0x20010, 0x21, 0x31};
  const uint32_t id = tree.intern(path, &mappings);
  EXPECT_EQ(tree.take_fresh().nodes.size(), 3u);
  for (uint64_t end = 0x31000; end < 0x40000; end += 0x1000) {
    ASSERT_TRUE(mappings.add({0x20000, end, 0, 0, ""}));
    tree.forget_addresses();
    EXPECT_EQ(tree.intern(path, &mappings), id);
  }
  EXPECT_TRUE(tree.take_fresh().nodes.empty());
  EXPECT_EQ(tree.node_count(), 3u);
}

TEST(SamplingTimeMap, lies_on_the_line_between_two_pairs) {
  TimeMap times;
  times.add(1000, 50);
  times.add(2000, 2050);
  EXPECT_EQ(times.to_ticks(1500), 1050u);
  EXPECT_EQ(times.to_ticks(2000), 2050u);
  EXPECT_EQ(times.to_ticks(9000), 2050u);
}

class SamplingProbeTest : public testing::Test {
 protected:
  void SetUp() override { fake = {}; }
};

TEST_F(SamplingProbeTest, takes_cycles_where_there_is_a_pmu) {
  const SamplingProbe probe = probe_sampling(fake_kernel(), 97, "fp");
  ASSERT_TRUE(probe.event);
  EXPECT_EQ(probe.event->source, SamplingSource::kCycles);
  const perf_event_attr attr = probe.event->attributes(97);
  EXPECT_TRUE(attr.freq && attr.exclude_kernel && attr.use_clockid);
  EXPECT_EQ(attr.sample_freq, 97u);
  EXPECT_EQ(probe.event->period_or_rate(48), 48u);
}

TEST_F(SamplingProbeTest, takes_the_cpu_clock_where_there_is_none) {
  fake.refuse = [](const perf_event_attr& attr, pid_t) {
    return attr.type == PERF_TYPE_HARDWARE ? -ENOENT : 0;
  };
  const SamplingProbe probe = probe_sampling(fake_kernel(), 100, "fp");
  ASSERT_TRUE(probe.event);
  EXPECT_EQ(probe.event->source, SamplingSource::kCpuClock);
  const perf_event_attr attr = probe.event->attributes(100);
  EXPECT_FALSE(attr.freq) << "its frequency could not be changed later";
  EXPECT_EQ(attr.sample_period, 10'000'000u);
  EXPECT_EQ(probe.event->period_or_rate(50), 20'000'000u);
  EXPECT_EQ(probe.event->period_or_rate(0), 1'000'000'000u);
}

TEST_F(SamplingProbeTest, takes_the_cpu_clock_where_cycles_count_on_some_cores_only) {
  fake.files["/sys/bus/event_source/devices/cpu_core/cpus"] = "0-15\n";
  fake.files["/sys/bus/event_source/devices/cpu_atom/cpus"] = "16-23\n";
  for (const char* call_graph : {"fp", "lbr"}) {
    fake.refuse = [](const perf_event_attr& attr, pid_t) {  // a clock has no branch records
      return (attr.sample_type & PERF_SAMPLE_BRANCH_STACK) != 0 ? -EOPNOTSUPP : 0;
    };
    const SamplingProbe probe = probe_sampling(fake_kernel(), 97, call_graph);
    ASSERT_TRUE(probe.event);
    EXPECT_EQ(probe.event->source, SamplingSource::kCpuClock);
    EXPECT_EQ(probe.event->call_graph, CallGraph::kFramePointers);
    EXPECT_THAT(probe.obstacle.reason, HasSubstr("on performance cores only"));
  }
  fake.files.erase("/sys/bus/event_source/devices/cpu_atom/cpus");
  const SamplingProbe probe = probe_sampling(fake_kernel(), 97, "fp");
  EXPECT_EQ(probe.event->source, SamplingSource::kCycles) << "its other cores are off";
  EXPECT_EQ(probe.obstacle.reason, "");
}

TEST_F(SamplingProbeTest, says_why_there_is_nothing) {
  fake.paranoid = 3;
  fake.refuse = [](const perf_event_attr&, pid_t) { return -EACCES; };
  SamplingProbe probe = probe_sampling(fake_kernel(), 97, "fp");
  EXPECT_FALSE(probe.event);
  EXPECT_THAT(probe.obstacle.reason, HasSubstr("perf_event_paranoid is 3"));
  EXPECT_THAT(probe.obstacle.remedy, HasSubstr("perf_event_paranoid=2"));
  fake.refuse = [](const perf_event_attr&, pid_t) { return -ENOSYS; };
  probe = probe_sampling(fake_kernel(), 97, "fp");
  EXPECT_THAT(probe.obstacle.reason, HasSubstr("no perf_event_open"));
}

TEST_F(SamplingProbeTest, is_cut_to_the_rate_of_the_kernel) {
  fake.files["/proc/sys/kernel/perf_event_max_sample_rate"] = "50\n";
  const SamplingProbe probe = probe_sampling(fake_kernel(), 97, "fp");
  ASSERT_TRUE(probe.event);
  EXPECT_EQ(probe.event->rate_hz, 50u);
  EXPECT_THAT(probe.obstacle.reason, HasSubstr("at most 50 Hz"));
}

TEST_F(SamplingProbeTest, falls_back_from_branch_records_and_says_so) {
  fake.refuse = [](const perf_event_attr& attr, pid_t) {
    return (attr.sample_type & PERF_SAMPLE_BRANCH_STACK) != 0 ? -EOPNOTSUPP : 0;
  };
  const SamplingProbe probe = probe_sampling(fake_kernel(), 97, "lbr");
  ASSERT_TRUE(probe.event);
  EXPECT_EQ(probe.event->call_graph, CallGraph::kFramePointers);
  EXPECT_THAT(probe.obstacle.reason, HasSubstr("LBR"));
}

}  // namespace
}  // namespace aon::perf
