// A node that was joined, joined again: what goes and what stays.
#include "tools/joining.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "core/spool/files.h"
#include "tests/unit/writers/spool_fixture.h"

namespace aon::tools {
namespace {

namespace fs = std::filesystem;

class Joining : public testing::Test {
 protected:
  /// Rank 1 on node-b in `second`, with one segment.
  void write_second(bool has_evictions) const {
    test::NodeSpool node(second(), "node-b");
    node.add_process(0, 1, 2, {{"work", RegionRole::kFunction}});
    node.add_records(0, 1, {test::span_record(1, 10, 20)});
    LossDefinition loss{};
    loss.slot = 1;
    loss.reason = static_cast<uint32_t>(LossReason::kEvictedByCap);
    if (has_evictions) node.define(0, DefinitionType::kEviction, loss);
    node.finish();
    segment_ = node.segment(0).filename();
  }
  void write_first() const {
    test::NodeSpool node(first(), "node-a");
    node.add_process(0, 0, 2, {});
    node.finish();
  }
  void join() const {
    const Status status = join_directories({first().string(), second().string()});
    ASSERT_TRUE(status) << status.error().message;
  }

  fs::path first() const { return folder_.path() / "first"; }
  fs::path second() const { return folder_.path() / "second"; }
  fs::path origin() const { return second() / "spool" / "node-b" / segment_; }
  fs::path copy() const { return first() / "spool" / "node-b" / segment_; }

 private:
  test::TemporaryFolder folder_;
  mutable fs::path segment_;
};

TEST_F(Joining, what_the_origin_has_evicted_goes_and_what_it_has_lost_stays) {
  for (const bool has_evictions : {false, true}) {
    fs::remove_all(first());
    fs::remove_all(second());
    write_first();
    write_second(has_evictions);
    join();
    ASSERT_TRUE(fs::exists(copy()));
    fs::remove(origin());
    join();
    EXPECT_EQ(fs::exists(copy()), !has_evictions);
  }
}

TEST_F(Joining, an_older_copy_changes_nothing) {
  write_first();
  write_second(true);
  join();
  const fs::path definitions = second() / "spool" / "node-b" / "definitions.aon";
  const fs::path older = definitions.string() + ".older";
  fs::copy_file(definitions, older);
  fs::last_write_time(older, fs::last_write_time(definitions) - std::chrono::seconds(1));
  fs::rename(older, definitions);
  fs::remove(origin());
  join();
  EXPECT_TRUE(fs::exists(copy()));
}

/// Three directories of one launch, of which the third goes on after it was joined to the second.
class JoinedBefore : public testing::Test {
 protected:
  fs::path dir(const char* name) const { return folder_.path() / name; }
  /// Rank `rank` and `more` behind it, each with a segment; what was there goes.
  void write(const char* name, int32_t rank, uint32_t more = 0) const {
    fs::remove_all(dir(name));
    test::NodeSpool node(dir(name), std::string("node-") + name);
    for (uint32_t i = 0; i <= more; ++i) {
      node.add_process(i, rank + static_cast<int32_t>(i), 4, {{"work", RegionRole::kFunction}});
      node.add_records(i, 1, {test::span_record(1, 10, 20)});
    }
    node.finish();
  }
  void join(const std::vector<const char*>& names) const {
    std::vector<std::string> dirs;
    for (const char* name : names) dirs.push_back(dir(name).string());
    const Status check = check_one_launch(dirs);
    ASSERT_TRUE(check) << check.error().message;
    const Status status = join_directories(dirs);
    ASSERT_TRUE(status) << status.error().message;
  }
  /// Node folders, and how many files are in each but the note.
  std::map<std::string, size_t> content(const char* name) const {
    std::map<std::string, size_t> counts;
    for (const auto& node : fs::directory_iterator(dir(name) / "spool")) {
      size_t& count = counts[node.path().filename().string()];
      for (const auto& file : fs::directory_iterator(node))
        count += file.path().filename() == "joined-from" ? 0 : 1;
    }
    return counts;
  }
  void SetUp() override {
    write("a", 0);
    write("b", 1);
    write("c", 2);
    join({"b", "c"});
  }

 private:
  test::TemporaryFolder folder_;
};

TEST_F(JoinedBefore, a_node_is_as_new_as_in_its_own_directory) {
  const auto before = content("b");
  write("c", 2, 1);
  const std::map<std::string, size_t> all = {{"node-a", content("a").at("node-a")},
                                             {"node-b", before.at("node-b")},
                                             {"node-c", content("c").at("node-c")}};
  ASSERT_GT(all.at("node-c"), before.at("node-c"));
  join({"a", "b", "c"});
  EXPECT_EQ(content("a"), all);
  EXPECT_EQ(content("b"), before) << "it was only read";
  join({"a", "b", "c"});
  join({"a", "c", "b"});
  EXPECT_EQ(content("a"), all) << "an older copy changes nothing";
}

TEST_F(JoinedBefore, a_node_that_came_by_another_directory_is_taken_anew_from_its_own) {
  join({"a", "b"});
  write("c", 2, 1);
  join({"a", "c"});
  EXPECT_EQ(content("a").at("node-c"), content("c").at("node-c"));
  EXPECT_EQ(content("a").size(), 3u);
}

/// The courier was lost before all of it came; the clock of its node is behind.
TEST_F(Joining, what_a_courier_brought_in_part_becomes_whole) {
  for (const bool has_process : {false, true}) {
    fs::remove_all(first());
    fs::remove_all(second());
    write_first();
    write_second(false);
    {
      test::NodeSpool part(first(), "node-b");
      if (has_process) part.add_process(0, 1, 2, {{"work", RegionRole::kFunction}});
      part.finish();
    }
    const fs::path brought = copy().parent_path();
    std::ofstream(brought / spool::kOriginFile) << spool::kBroughtOrigin;
    const auto past = fs::file_time_type::clock::now() - std::chrono::hours(1);
    fs::last_write_time(second() / "spool" / "node-b" / "definitions.aon", past);
    const Status check = check_one_launch({first().string(), second().string()});
    EXPECT_TRUE(check) << check.error().message;
    join();
    EXPECT_TRUE(fs::exists(copy())) << has_process;
    EXPECT_FALSE(fs::exists(first() / "spool" / "node-b~2")) << has_process;
  }
}

/// Where it was refused, an archive was made of the node alone, and a folder of each ring.
TEST_F(Joining, what_a_courier_brought_in_part_is_not_mixed_with_other_folders_of_its_node) {
  for (const bool has_process : {false, true}) {
    fs::remove_all(first());
    fs::remove_all(second());
    write_first();
    write_second(false);
    const fs::path nodes = second() / "spool";
    const fs::path ring = nodes / "node-b~fallback-7-8";
    fs::rename(nodes / "node-b", ring);
    write_second(false);
    std::ofstream(ring / "only-here").put('x');
    {
      test::NodeSpool part(first(), "node-b");
      if (has_process) part.add_process(0, 1, 2, {{"work", RegionRole::kFunction}});
      part.finish();
    }
    const fs::path brought = copy().parent_path();
    std::ofstream(brought / spool::kOriginFile) << spool::kBroughtOrigin;
    join();
    EXPECT_TRUE(fs::equivalent(copy(), origin())) << has_process;
    EXPECT_FALSE(fs::exists(brought / "only-here")) << has_process;
    EXPECT_TRUE(fs::exists(first() / "spool" / ring.filename() / "only-here")) << has_process;
  }
}

/// As above, but what is whole comes by another directory, or the part does.
TEST_F(JoinedBefore, what_a_courier_brought_in_part_becomes_whole_by_way_of_another_directory) {
  const auto bring_part_to_a = [&] {
    write("a", 0);
    test::NodeSpool part(dir("a"), "node-c");
    part.add_process(0, 2, 4, {{"work", RegionRole::kFunction}});
    part.finish();
    std::ofstream(dir("a") / "spool" / "node-c" / spool::kOriginFile) << spool::kBroughtOrigin;
  };
  const size_t whole = content("c").at("node-c");
  bring_part_to_a();
  ASSERT_LT(content("a").at("node-c"), whole);
  join({"a", "b"});
  EXPECT_EQ(content("a").at("node-c"), whole) << "b has a copy";
  bring_part_to_a();
  write("d", 3);
  join({"d", "a"});
  ASSERT_LT(content("d").at("node-c"), whole);
  const auto past = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(dir("c") / "spool" / "node-c" / "definitions.aon", past);
  join({"d", "c"});
  EXPECT_EQ(content("d").at("node-c"), whole) << "the part came by way of a";
  join({"d", "a"});
  EXPECT_EQ(content("d").at("node-c"), whole);
  EXPECT_EQ(content("d").size(), 3u);
}

/// A limit on the size of files stands for a disk without room, on which links can still be made.
TEST_F(Joining, without_room_for_its_note_no_node_is_joined) {
  write_first();
  write_second(false);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit none{0, before.rlim_max};
  const sighandler_t handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  const Status status = join_directories({first().string(), second().string()});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  ASSERT_FALSE(status) << "what is new there would be left out for good";
  EXPECT_EQ(status.error().code, Code::kIo);
  EXPECT_FALSE(fs::exists(first() / "spool" / "node-b"));
  join();
  EXPECT_TRUE(fs::exists(copy()));
}

}  // namespace
}  // namespace aon::tools
