// A node that was joined, joined again: what goes and what stays.
#include "tools/joining.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

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
