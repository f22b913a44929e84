#include "launcher/job_directory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "core/base/containers.h"
#include "tests/unit/folder_fixture.h"

namespace aon::launcher {
namespace {

class JobDirectory : public test::FolderFixture {
 protected:
  static Launch launch(const std::string& id, const std::string& evidence = "") {
    Launch result;
    result.id = id;
    result.evidence = evidence;
    return result;
  }
  static constexpr uid_t kOther = 65534;

  mode_t mode_of(const std::string& name) const {
    struct stat status {};
    return stat(path(name).c_str(), &status) == 0 ? status.st_mode & 0777 : 0;
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

TEST_F(JobDirectory, is_its_owners_whatever_the_umask) {
  const mode_t before = umask(0777);
  const auto dir = open_job_directory(path("a/b"), launch("one"));
  const mode_t after = umask(before);
  ASSERT_TRUE(dir.has_value()) << dir.error().message;
  EXPECT_EQ(after, 0777u);
  EXPECT_EQ(mode_of("a"), 0700u);
  EXPECT_EQ(mode_of("a/b"), 0700u);
  EXPECT_EQ(mode_of("a/b/.launch"), 0600u);
}

/// One program of a launch after the other, as of a script.
TEST_F(JobDirectory, whose_spool_was_dropped_keeps_its_archive) {
  ASSERT_EQ(*open_job_directory(path("out"), launch("one")), path("out"));
  ASSERT_EQ(mkdir(path("out/spool").c_str(), 0700), 0);
  std::ofstream(path("out/aon.json")) << "{}";
  EXPECT_EQ(*open_job_directory(path("out"), launch("one")), path("out")) << "it adds to the spool";
  ASSERT_EQ(rmdir(path("out/spool").c_str()), 0);
  for (int rank = 0; rank < 2; ++rank)
    EXPECT_EQ(*open_job_directory(path("out"), launch("one")), path("out.1"));
}

/// Of a project: its quota counts what is of its group.
TEST_F(JobDirectory, that_hands_its_group_on_goes_on_doing_so) {
  ASSERT_EQ(mkdir(path("out").c_str(), 0700), 0);
  ASSERT_EQ(chmod(path("out").c_str(), 02775), 0);
  ASSERT_EQ(*open_job_directory(path("out"), launch("one")), path("out"));
  struct stat status {};
  ASSERT_EQ(stat(path("out").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 02700u);
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

TEST_F(JobDirectory, of_an_id_that_may_come_again_is_joined_while_it_is_young_and_without_archive) {
  Launch one = launch("hydra-n1.4711.0");
  one.may_come_again = true;
  ASSERT_EQ(*open_job_directory(path("out"), one), path("out"));
  EXPECT_EQ(*open_job_directory(path("out"), one), path("out"));
  std::ofstream(path("out/aon.json")) << "{}";
  EXPECT_EQ(*open_job_directory(path("out"), one), path("out.1"));
  EXPECT_EQ(*open_job_directory(path("out"), one), path("out.1"));
  const timespec old[2] = {{1'000'000, 0}, {1'000'000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, path("out.1/.launch").c_str(), old, 0), 0);
  EXPECT_EQ(*open_job_directory(path("out"), one), path("out.2"));
  one.may_come_again = false;  // an id for ever
  ASSERT_EQ(mkdir(path("out/spool").c_str(), 0700), 0);
  EXPECT_EQ(*open_job_directory(path("out"), one), path("out"));
}

TEST_F(JobDirectory,
       of_an_id_that_may_come_again_is_not_joined_where_this_node_was_in_another_launch) {
  Launch one = launch("hydra-n1.4711.0");
  one.may_come_again = true;
  one.part = "n1.0";
  one.part_evidence = "n1-100-7";
  ASSERT_EQ(*open_job_directory(path("out"), one), path("out"));
  EXPECT_EQ(*open_job_directory(path("out"), one), path("out"));
  Launch two = one;
  two.part_evidence = "n1-200-9";
  EXPECT_EQ(*open_job_directory(path("out"), two), path("out.1"));
  EXPECT_EQ(*open_job_directory(path("out"), two), path("out.1"));
  EXPECT_EQ(*open_job_directory(path("out"), one), path("out"));
  Launch other_part = one;
  other_part.part = "n1.1";
  other_part.part_evidence = "n1-101-7";
  EXPECT_EQ(*open_job_directory(path("out"), other_part), path("out"));
}

/// `count` folders of another use: out, out.1, ...
void use_up(const std::string& out, int count) {
  for (int suffix = 0; suffix < count; ++suffix) {
    const std::string dir = suffix == 0 ? out : out + "." + std::to_string(suffix);
    ASSERT_EQ(mkdir(dir.c_str(), 0755), 0);
    std::ofstream(dir + "/data") << "1";
  }
}

TEST_F(JobDirectory, of_the_hundredth_launch_is_the_next) {
  use_up(path("out"), 99);
  EXPECT_EQ(*open_job_directory(path("out"), launch("one")), path("out.99"));
}

TEST_F(JobDirectory, behind_many_others_is_found_without_looking_at_all_names) {
  use_up(path("out"), 100);
  const auto one = open_job_directory(path("out"), launch("one"));
  ASSERT_TRUE(one.has_value()) << one.error().message;
  EXPECT_FALSE(std::filesystem::exists(path("out.100")));
  EXPECT_EQ(one->find(path("out.")), 0u);
  const auto two = open_job_directory(path("out"), launch("two"));
  ASSERT_TRUE(two.has_value()) << two.error().message;
  EXPECT_NE(*one, *two);
  EXPECT_EQ(*open_job_directory(path("out"), launch("one")), *one);
  EXPECT_EQ(*open_job_directory(path("out"), launch("two")), *two);
  Launch again = launch("one");
  again.may_come_again = true;
  std::ofstream(*one + "/aon.json") << "{}";
  const auto third = open_job_directory(path("out"), again);
  ASSERT_TRUE(third.has_value()) << third.error().message;
  EXPECT_NE(*third, *one);
  EXPECT_EQ(read_launch_id(*third), "one");
}

TEST_F(JobDirectory, that_is_the_current_one_or_above_has_the_others_beside_it) {
  std::filesystem::create_directories(path("a/b"));
  std::filesystem::create_directory_symlink(path("a/b"), path("link"));
  std::ofstream(path("a/data")) << "1";
  std::ofstream(path("a/b/data")) << "1";
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(path("a/b"));
  EXPECT_EQ(*open_job_directory(".", launch("one")), path("a/b.1"));
  EXPECT_EQ(*open_job_directory("./c/.//d/", launch("one")), path("a/b/c/d"));
  EXPECT_EQ(*open_job_directory("..", launch("one")), path("a.1"));
  EXPECT_EQ(*open_job_directory(path("link/../c"), launch("one")), path("a/c"));
  std::filesystem::current_path(before);
}

TEST_F(JobDirectory, takes_an_empty_folder_and_leaves_a_used_one) {
  ASSERT_EQ(mkdir(path("empty").c_str(), 0755), 0);
  EXPECT_EQ(*open_job_directory(path("empty"), launch("one")), path("empty"));
  ASSERT_EQ(mkdir(path("used").c_str(), 0755), 0);
  std::ofstream(path("used/data")) << "1";
  EXPECT_EQ(*open_job_directory(path("used"), launch("one")), path("used.1"));
}

TEST_F(JobDirectory, of_another_user_is_not_used_whatever_it_says) {
  if (geteuid() != 0) GTEST_SKIP() << "making files of another user needs root";
  ASSERT_EQ(*open_job_directory(path("out"), launch("one")), path("out"));
  ASSERT_EQ(chmod(path("out").c_str(), 0777), 0);
  ASSERT_EQ(chown(path("out/.launch").c_str(), kOther, kOther), 0);
  ASSERT_EQ(chown(path("out").c_str(), kOther, kOther), 0);
  EXPECT_EQ(*open_job_directory(path("out"), launch("one")), path("out.1"));
  ASSERT_EQ(mkdir(path("empty").c_str(), 0777), 0);
  ASSERT_EQ(chown(path("empty").c_str(), kOther, kOther), 0);
  EXPECT_EQ(*open_job_directory(path("empty"), launch("one")), path("empty.1"));
  EXPECT_TRUE(std::filesystem::is_empty(path("empty")));
  std::ofstream(path("file")) << "1";
  ASSERT_EQ(chown(path("file").c_str(), kOther, kOther), 0);
  EXPECT_EQ(*open_job_directory(path("file"), launch("one")), path("file.1"));
}

TEST_F(JobDirectory, behind_a_link_is_used_when_link_and_folder_are_the_users) {
  ASSERT_EQ(mkdir(path("target").c_str(), 0755), 0);
  ASSERT_EQ(symlink("target", path("link").c_str()), 0);
  EXPECT_EQ(*open_job_directory(path("link"), launch("one")), path("link"));
  EXPECT_EQ(read_launch_id(path("target")), "one");
  EXPECT_EQ(mode_of("target"), 0700u);
  if (geteuid() != 0) GTEST_SKIP() << "making links of another user needs root";
  ASSERT_EQ(lchown(path("link").c_str(), kOther, kOther), 0);
  EXPECT_EQ(*open_job_directory(path("link"), launch("one")), path("link.1"));
  ASSERT_EQ(lchown(path("link").c_str(), 0, 0), 0);
  ASSERT_EQ(chown(path("target").c_str(), kOther, kOther), 0);
  EXPECT_EQ(*open_job_directory(path("link"), launch("one")), path("link.1"));
}

TEST_F(JobDirectory, that_others_may_write_becomes_private) {
  ASSERT_EQ(mkdir(path("out").c_str(), 0700), 0);
  ASSERT_EQ(chmod(path("out").c_str(), 0775), 0);
  EXPECT_EQ(*open_job_directory(path("out"), launch("one")), path("out"));
  EXPECT_EQ(mode_of("out"), 0700u);
  ASSERT_EQ(chmod(path("out").c_str(), 0770), 0);
  EXPECT_EQ(*open_job_directory(path("out"), launch("one")), path("out"));
  EXPECT_EQ(mode_of("out"), 0700u);
  // One that is not used stays as it is.
  ASSERT_EQ(chmod(path("out").c_str(), 0775), 0);
  EXPECT_EQ(*open_job_directory(path("out"), launch("two")), path("out.1"));
  EXPECT_EQ(mode_of("out"), 0775u);
}

TEST_F(JobDirectory, whose_launch_another_user_wrote_is_not_believed) {
  if (geteuid() != 0) GTEST_SKIP() << "making files of another user needs root";
  ASSERT_EQ(*open_job_directory(path("out"), launch("one")), path("out"));
  ASSERT_EQ(chown(path("out/.launch").c_str(), kOther, kOther), 0);
  EXPECT_EQ(read_launch_id(path("out")), "");
  EXPECT_EQ(*open_job_directory(path("out"), launch("one")), path("out.1"));
}

TEST_F(JobDirectory, is_taken_where_the_name_of_its_own_file_is_taken) {
  const std::string name = "/.launch-" + host_of_pids() + "-" + std::to_string(getpid());
  const timespec long_ago[2] = {{1, 0}, {1, 0}};
  const auto make_file = [&](const std::string& file) { std::ofstream(file) << "launch dead\n"; };
  for (const char* dir : {"dead", "young", "folder"}) std::filesystem::create_directory(path(dir));
  make_file(path("dead") + name);  // of a launch that was killed, and had this pid
  ASSERT_EQ(utimensat(AT_FDCWD, (path("dead") + name).c_str(), long_ago, 0), 0);
  make_file(path("young") + name);  // of a node that has the same name, maybe
  std::filesystem::create_directory(path("folder") + name);
  for (const char* dir : {"dead", "young", "folder"}) {
    const auto taken = open_job_directory(path(dir), launch("one"));
    ASSERT_TRUE(taken.has_value()) << taken.error().message;
    EXPECT_EQ(*taken, path(dir));
    EXPECT_EQ(read_launch_id(path(dir)), "one");
    EXPECT_EQ(std::filesystem::exists(path(dir) + name), dir != std::string("dead"));
    EXPECT_FALSE(std::filesystem::exists(path(dir) + name + "-1")) << "it is for a moment only";
  }
}

TEST_F(JobDirectory, is_taken_where_another_user_has_the_name_of_its_own_file) {
  if (geteuid() != 0) GTEST_SKIP() << "making files of another user needs root";
  const std::string name = "/.launch-" + host_of_pids() + "-" + std::to_string(getpid());
  std::filesystem::create_directory(path("out"));
  std::filesystem::create_directory(path("out") + name);
  ASSERT_EQ(chown((path("out") + name).c_str(), kOther, kOther), 0);
  EXPECT_EQ(*open_job_directory(path("out"), launch("one")), path("out"));
  EXPECT_TRUE(std::filesystem::exists(path("out") + name)) << "it is not ours to remove";
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

TEST_F(JobDirectory, that_this_node_cannot_open_now_is_no_wrong_option) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto dir = open_job_directory(path("out"), launch("one"));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(dir.has_value());
  EXPECT_EQ(dir.error().code, Code::kIo) << dir.error().message;
  for (int error_number : {ESTALE, ETIMEDOUT, ENOMEM, EINTR, ESHUTDOWN, ENOSPC, EDQUOT, EIO})
    EXPECT_FALSE(is_wrong_path(error_number)) << strerror(error_number);
}

TEST_F(JobDirectory, other_folders_are_made_and_absolute) {
  std::string folder = path("a/b/");
  ASSERT_TRUE(open_folder("--spool-dir", folder));
  EXPECT_EQ(folder, path("a/b"));
  EXPECT_TRUE(std::filesystem::is_directory(folder));
  std::ofstream(path("file")) << "1";
  folder = path("file");
  const Status status = open_folder("--spool-dir", folder);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kInvalid);
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
