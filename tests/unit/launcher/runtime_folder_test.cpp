#include "launcher/runtime_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "core/base/file.h"

namespace aon::launcher {
namespace {

/// Set, or unset by null, and as before at the end.
class ChangedVariable {
 public:
  ChangedVariable(const char* name, const char* value) : name_(name) {
    if (const char* before = getenv(name)) before_ = before;
    set(value);
  }
  ~ChangedVariable() { set(before_ ? before_->c_str() : nullptr); }
  ChangedVariable(const ChangedVariable&) = delete;
  ChangedVariable& operator=(const ChangedVariable&) = delete;

 private:
  void set(const char* value) const {
    if (value != nullptr) {
      setenv(name_, value, 1);
    } else {
      unsetenv(name_);
    }
  }
  const char* name_;
  std::optional<std::string> before_;
};

TEST(RuntimeFolder, notes_directories_for_the_epilog) {
  const std::string job = "99" + std::to_string(getpid());
  const std::string path = "/tmp/aon-" + std::to_string(geteuid()) + "/slurm-" + job;
  std::remove(path.c_str());
  note_for_epilog(job.c_str(), "/somewhere/one");
  note_for_epilog(job.c_str(), "/with\nan end of line");
  note_for_epilog(job.c_str(), "/some where/two");
  const auto text = read_text_file(path);
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, "/somewhere/one\n/some where/two\n");
  std::remove(path.c_str());
}

TEST(RuntimeFolder, jobs_have_numbers) {
  for (const char* job : {static_cast<const char*>(nullptr), "", "../x", "12a"})
    note_for_epilog(job, "/somewhere");
  EXPECT_FALSE(read_text_file("/tmp/aon-" + std::to_string(geteuid()) + "/slurm-12a"));
  EXPECT_FALSE(read_text_file("/tmp/aon-" + std::to_string(geteuid()) + "/slurm-"));
}

TEST(RuntimeFolder, is_one_that_has_room_for_the_name_of_a_socket) {
  char top[] = "/tmp/aon-test-XXXXXX";
  ASSERT_NE(mkdtemp(top), nullptr);
  const ChangedVariable session("XDG_RUNTIME_DIR", top);
  EXPECT_EQ(runtime_folder(), std::string(top) + "/aon");
  const std::string deep = std::string(top) + "/" + std::string(100, 'd');
  ASSERT_EQ(mkdir(deep.c_str(), 0700), 0);
  setenv("XDG_RUNTIME_DIR", deep.c_str(), 1);
  EXPECT_EQ(runtime_folder(), "/tmp/aon-" + std::to_string(geteuid()));
  rmdir(deep.c_str());
  rmdir(top);
}

/// A job may go on when its user has logged out of the node.
TEST(RuntimeFolder, of_a_job_is_none_that_goes_with_the_login) {
  char top[] = "/tmp/aon-test-XXXXXX";
  ASSERT_NE(mkdtemp(top), nullptr);
  const std::string logind = "/run/user/../.." + std::string(top);
  if (access(logind.c_str(), F_OK) != 0) {
    rmdir(top);
    GTEST_SKIP() << "no /run/user";
  }
  const ChangedVariable session("XDG_RUNTIME_DIR", logind.c_str());
  {
    const ChangedVariable job("SLURM_JOB_ID", nullptr);
    EXPECT_EQ(runtime_folder(), logind + "/aon");
  }
  const ChangedVariable job("SLURM_JOB_ID", "7");
  EXPECT_EQ(runtime_folder(), "/tmp/aon-" + std::to_string(geteuid()));
  setenv("XDG_RUNTIME_DIR", top, 1);
  EXPECT_EQ(runtime_folder(), std::string(top) + "/aon") << "a site's own";
  rmdir(top);
}

}  // namespace
}  // namespace aon::launcher
