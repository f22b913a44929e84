#include "launcher/job_directory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <vector>

#include "tests/unit/launcher/temporary_folder.h"

namespace aon::launcher {
namespace {

class JobDirectory : public TemporaryFolder {
 protected:
  static Launch launch(const std::string& id, const std::string& evidence = "") {
    Launch result;
    result.id = id;
    result.evidence = evidence;
    return result;
  }
};

TEST_F(JobDirectory, is_private_and_says_whose_it_is) {
  const auto dir = open_job_directory(path("a/b"), launch("one"));
  ASSERT_TRUE(dir.has_value()) << dir.error().message;
  EXPECT_EQ(*dir, path("a/b"));
  EXPECT_EQ(read_launch_id(*dir), "one");
  struct stat status {};
  ASSERT_EQ(stat(dir->c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(JobDirectory, is_joined_by_the_same_launch_only) {
  ASSERT_EQ(*open_job_directory(path("out"), launch("one")), path("out"));
  EXPECT_EQ(*open_job_directory(path("out"), launch("one")), path("out"));
  EXPECT_EQ(*open_job_directory(path("out"), launch("two")), path("out.1"));
  EXPECT_EQ(*open_job_directory(path("out"), launch("three")), path("out.2"));
  EXPECT_EQ(*open_job_directory(path("out/"), launch("two")), path("out.1"));
}

TEST_F(JobDirectory, tells_launches_with_the_same_id_apart) {
  ASSERT_EQ(*open_job_directory(path("out"), launch("1", "tcp://a:1")), path("out"));
  EXPECT_EQ(*open_job_directory(path("out"), launch("1", "tcp://a:2")), path("out.1"));
}

TEST_F(JobDirectory, takes_an_empty_folder_and_leaves_a_used_one) {
  ASSERT_EQ(mkdir(path("empty").c_str(), 0755), 0);
  EXPECT_EQ(*open_job_directory(path("empty"), launch("one")), path("empty"));
  ASSERT_EQ(mkdir(path("used").c_str(), 0755), 0);
  std::ofstream(path("used/data")) << "1";
  EXPECT_EQ(*open_job_directory(path("used"), launch("one")), path("used.1"));
}

TEST_F(JobDirectory, refuses_a_path_that_cannot_be_one) {
  std::ofstream(path("file")) << "1";
  for (const std::string& bad : {path("file"), path("file/sub"), std::string("/proc/none/x")}) {
    const auto dir = open_job_directory(bad, launch("one"));
    ASSERT_FALSE(dir.has_value()) << bad;
    EXPECT_EQ(dir.error().code, Code::kInvalid);
    EXPECT_NE(dir.error().message.find(bad), std::string::npos);
  }
}

TEST_F(JobDirectory, is_the_same_for_ranks_that_race) {
  constexpr int kRanks = 16;
  for (int round = 0; round < 5; ++round) {
    const std::string wanted = path("race" + std::to_string(round));
    std::vector<pid_t> children;
    for (int rank = 0; rank < kRanks; ++rank) {
      const pid_t pid = fork();
      if (pid == 0) {
        const auto dir = open_job_directory(wanted, launch(rank % 2 == 0 ? "even" : "odd"));
        const bool is_right = dir && read_launch_id(*dir) == (rank % 2 == 0 ? "even" : "odd");
        _exit(is_right ? 0 : 1);
      }
      children.push_back(pid);
    }
    for (const pid_t pid : children) {
      int status = -1;
      waitpid(pid, &status, 0);
      EXPECT_EQ(status, 0);
    }
    EXPECT_EQ(access((wanted + ".1").c_str(), F_OK), 0);
    EXPECT_NE(access((wanted + ".2").c_str(), F_OK), 0);
  }
}

}  // namespace
}  // namespace aon::launcher
