#include "launcher/runtime_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/base/file.h"

namespace aon::launcher {
namespace {

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
  const char* before = getenv("XDG_RUNTIME_DIR");
  const std::string kept = before != nullptr ? before : "";
  setenv("XDG_RUNTIME_DIR", top, 1);
  EXPECT_EQ(runtime_folder(), std::string(top) + "/aon");
  const std::string deep = std::string(top) + "/" + std::string(100, 'd');
  ASSERT_EQ(mkdir(deep.c_str(), 0700), 0);
  setenv("XDG_RUNTIME_DIR", deep.c_str(), 1);
  EXPECT_EQ(runtime_folder(), "/tmp/aon-" + std::to_string(geteuid()));
  if (before != nullptr) {
    setenv("XDG_RUNTIME_DIR", kept.c_str(), 1);
  } else {
    unsetenv("XDG_RUNTIME_DIR");
  }
  rmdir(deep.c_str());
  rmdir(top);
}

}  // namespace
}  // namespace aon::launcher
