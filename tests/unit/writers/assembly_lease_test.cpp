// Who assembles is seen to live from other nodes, whatever the assembly does.

#include "writers/assemble/assembly_lease.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/base/fork_alone.h"
#include "tests/unit/writers/ledger_law.h"
#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/assemble.h"
#include "writers/assemble/beat_thread.h"

namespace aon::writers {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

fs::path lease_file(const fs::path& job) { return job / "assemble.lease"; }

/// As other nodes see it when nobody has renewed it for long.
void age(const fs::path& job) {
  fs::last_write_time(lease_file(job), fs::file_time_type::clock::now() - 100s);
}

bool is_fresh(const fs::path& job) {
  std::error_code error;
  const fs::file_time_type then = fs::last_write_time(lease_file(job), error);
  return !error && fs::file_time_type::clock::now() - then < 50s;
}

bool becomes_fresh(const fs::path& job) {
  for (int i = 0; i < 3000 && !is_fresh(job); ++i) std::this_thread::sleep_for(10ms);
  return is_fresh(job);
}

Result<std::unique_ptr<AssemblyLease>> take(const fs::path& job,
                                            std::chrono::milliseconds longest_silence) {
  return AssemblyLease::take(job, {.every = 2ms, .longest_silence = longest_silence});
}

TEST(AssemblyLease, is_renewed_while_nobody_calls) {
  test::TemporaryFolder job;
  const auto lease = take(job.path(), 1h);
  ASSERT_TRUE(lease.has_value());
  for (int i = 0; i < 3; ++i) {
    age(job.path());
    EXPECT_TRUE(becomes_fresh(job.path()));
  }
  EXPECT_TRUE((*lease)->is_held());
}

TEST(AssemblyLease, of_an_assembly_that_hangs_grows_old_until_it_goes_on) {
  test::TemporaryFolder job;
  const auto lease = take(job.path(), -1ms);
  ASSERT_TRUE(lease.has_value());
  age(job.path());
  std::this_thread::sleep_for(100ms);
  EXPECT_FALSE(is_fresh(job.path()));
  (*lease)->beat();
  EXPECT_TRUE(is_fresh(job.path()));
}

TEST(AssemblyLease, that_another_has_taken_is_lost_for_good) {
  test::TemporaryFolder job;
  const auto lease = take(job.path(), 1h);
  ASSERT_TRUE(lease.has_value());
  EXPECT_TRUE((*lease)->is_held());
  fs::remove(lease_file(job.path()));
  EXPECT_FALSE((*lease)->is_held());
  std::ofstream(lease_file(job.path())) << "elsewhere 1 1 token\n";
  EXPECT_FALSE((*lease)->is_held());
  age(job.path());
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(is_fresh(job.path())) << "it is another's";
}

/// A child for a share or a module has no such thread: what it inherits must not stop it.
TEST(AssemblyLease, lets_children_work) {
  test::TemporaryFolder job;
  const auto lease = take(job.path(), 1h);
  ASSERT_TRUE(lease.has_value());
  for (int i = 0; i < 50; ++i) {
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      (*lease)->beat();
      _exit((*lease)->is_held() ? 0 : 1);
    }
    int how = 0;
    ASSERT_EQ(waitpid(pid, &how, 0), pid);
    EXPECT_EQ(how, 0);
  }
}

TEST(AssemblyLease, is_renewed_where_the_assembly_does_not_read_events) {
  test::TemporaryFolder job;
  test::NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, test::kRegions);
  node.add_records(0, 1, test::spans(10));
  node.finish();
  bool is_renewed = false;
  AssembleOptions options;
  options.drops_spool = true;
  options.may_drop_spool = [&] {  // stands for all that takes long and calls nobody
    age(job.path());
    is_renewed = becomes_fresh(job.path());
    return true;
  };
  ASSERT_TRUE(assemble(job.path(), options).has_value());
  EXPECT_TRUE(is_renewed);
  EXPECT_FALSE(fs::exists(lease_file(job.path())));
}

/// Takes and gives back memory of many sizes. Returns what the compiler cannot leave out.
size_t use_memory() {
  size_t sum = 0;
  for (size_t bytes = 16; bytes < 20'000; bytes += 160) sum += std::string(bytes, 'x').size();
  return sum;
}

TEST(BeatThread, holds_no_lock_of_memory_in_a_fork_alone) {
  constexpr int kForks = 40;
  constexpr unsigned kLimitS = 20;
  std::atomic<size_t> sum{0};
  const BeatThread beat(std::chrono::milliseconds(0), [&] { sum += use_memory(); });
  for (int i = 0; i < kForks; ++i) {
    const pid_t child = fork_alone();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(kLimitS);
      _exit(use_memory() != 0 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0) << "fork " << i;
  }
}

}  // namespace
}  // namespace aon::writers
