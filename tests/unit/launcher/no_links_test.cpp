// Files that are put in place where the file system has no hard links, and where it has no rename
// either that replaces nothing.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <thread>

#include "core/base/lease.h"
#include "core/base/place_file.h"
#include "launcher/job_directory.h"
#include "tests/no_links.h"
#include "tests/unit/folder_fixture.h"

namespace aon::launcher {
namespace {

/// GetParam(): the file system can rename without replacing.
class NoLinks : public test::FolderFixture, public testing::WithParamInterface<bool> {
 protected:
  static pid_t start(const std::function<bool()>& scene) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    if (become_without_links(GetParam() ? 1 : 0) != 0) _exit(95);
    _exit(scene() ? 0 : 1);
  }
  static int end_of(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  static int without_links(const std::function<bool()>& scene) { return end_of(start(scene)); }

  static Launch launch(const std::string& id) {
    Launch result;
    result.id = id;
    return result;
  }
  std::string directory_of(const std::string& id) const {
    const auto dir = open_job_directory(path("out"), launch(id));
    return dir ? *dir : dir.error().message;
  }
  std::string text_of(const std::string& name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  long file_count() const {
    return std::distance(std::filesystem::recursive_directory_iterator(folder_),
                         std::filesystem::recursive_directory_iterator());
  }
};

TEST_P(NoLinks, a_name_is_given_once) {
  const int code = without_links([&] {
    std::ofstream(path("first")) << "1\n";
    std::ofstream(path("second")) << "2\n";
    return link(path("first").c_str(), path("third").c_str()) != 0 &&
           place_file(path("first"), path("name"), "1\n") == 0 &&
           place_file(path("second"), path("name"), "2\n") == EEXIST;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(text_of("name"), "1\n");
  EXPECT_EQ(text_of("second"), "2\n");
}

TEST_P(NoLinks, a_job_directory_is_its_launchs) {
  const int code = without_links([&] {
    return directory_of("one") == path("out") && directory_of("one") == path("out") &&
           directory_of("two") == path("out.1");
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(read_launch_id(path("out")), "one");
  EXPECT_EQ(file_count(), 4) << "two directories with an identity each";
}

TEST_P(NoLinks, all_ranks_of_a_launch_agree) {
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < 16; ++rank)
    ranks.push_back(start([&] { return directory_of("one") == path("out"); }));
  for (const pid_t rank : ranks) EXPECT_EQ(end_of(rank), 0);
}

TEST_P(NoLinks, a_lease_has_one_owner) {
  const int code = without_links([&] {
    const auto held = Lease::take(path("l"));
    return held && !Lease::take(path("l")) && read_lease(path("l"))->pid == getpid();
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(file_count(), 0) << "it goes with its owner";
}

TEST_P(NoLinks, a_lease_of_the_dead_is_taken_over) {
  ASSERT_EQ(without_links([&] { return Lease::take(path("l")).has_value(); }), 0);
  std::ofstream(path("l")) << "nobody@1 1 1 token\n";
  timespec old[2] = {{1'000'000, 0}, {1'000'000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, path("l").c_str(), old, 0), 0);
  EXPECT_EQ(without_links([&] { return Lease::take(path("l")).has_value(); }), 0);
}

INSTANTIATE_TEST_SUITE_P(With, NoLinks, testing::Bool(), [](const auto& value) {
  return value.param ? "renames" : "nothing_else";
});

class BegunIdentity : public test::FolderFixture {
 protected:
  void SetUp() override {
    ASSERT_EQ(mkdir(path("out").c_str(), 0700), 0);
    std::ofstream(path("out/.launch")).close();
  }
  std::string open_it() const {
    Launch launch;
    launch.id = "one";
    const auto dir = open_job_directory(path("out"), launch);
    return dir ? *dir : dir.error().message;
  }
};

TEST_F(BegunIdentity, is_waited_for) {
  std::string found;
  std::thread rank([&] { found = open_it(); });
  std::ofstream(path("out/.launch")) << "launch one\nevidence \n" << std::flush;
  rank.join();
  EXPECT_EQ(found, path("out"));
}

TEST_F(BegunIdentity, that_nobody_ends_is_another_launchs) { EXPECT_EQ(open_it(), path("out.1")); }

}  // namespace
}  // namespace aon::launcher
