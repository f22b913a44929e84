#include "launcher/runtime_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
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

}  // namespace
}  // namespace aon::launcher
