#include "launcher/program.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <fstream>

#include "tests/unit/folder_fixture.h"

namespace aon::launcher {
namespace {

class ProgramSearch : public test::FolderFixture {};

TEST_F(ProgramSearch, finds_what_execvp_would_find) {
  EXPECT_EQ(find_program("/bin/sh").path, "/bin/sh");
  EXPECT_FALSE(find_program("sh").path.empty());
  EXPECT_EQ(find_program("sh").exit_code, 0);
}

TEST_F(ProgramSearch, says_127_where_there_is_none) {
  EXPECT_EQ(find_program("no-such-program-anywhere").exit_code, kExitNotFound);
  EXPECT_EQ(find_program(path("none")).exit_code, kExitNotFound);
  EXPECT_EQ(find_program("").exit_code, kExitNotFound);
}

TEST_F(ProgramSearch, says_126_where_it_cannot_run) {
  std::ofstream(path("text")) << "x";
  EXPECT_EQ(find_program(path("text")).exit_code, kExitNotExecutable);
  EXPECT_EQ(find_program(folder_).exit_code, kExitNotExecutable);
}

TEST_F(ProgramSearch, recognises_set_uid) {
  std::ofstream(path("tool")) << "#!/bin/sh\n";
  ASSERT_EQ(chmod(path("tool").c_str(), 0755), 0);
  EXPECT_FALSE(find_program(path("tool")).is_privileged);
  ASSERT_EQ(chmod(path("tool").c_str(), 04755), 0);
  EXPECT_TRUE(find_program(path("tool")).is_privileged);
  ASSERT_EQ(chmod(path("tool").c_str(), 02755), 0);
  EXPECT_TRUE(find_program(path("tool")).is_privileged);
}

}  // namespace
}  // namespace aon::launcher
