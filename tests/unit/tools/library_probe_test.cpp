#include "tools/library_probe.h"

#include <gtest/gtest.h>

namespace aon::tools {
namespace {

TEST(LibraryProbe, takes_the_first_that_loads) {
  const LibraryProbe found = probe_library({"libnothing_of_this_name.so.9", "libc.so.6"});
  EXPECT_EQ(found.name, "libc.so.6");
  EXPECT_EQ(found.problem, "");
}

TEST(LibraryProbe, calls_the_version_function) {
  // Any function without arguments that gives a positive number will do.
  EXPECT_GT(probe_library({"libc.so.6"}, "getpid").version, 0u);
  EXPECT_EQ(probe_library({"libc.so.6"}, "no_such_function").version, 0u);
}

TEST(LibraryProbe, finds_nothing_without_a_problem) {
  const LibraryProbe none = probe_library({"libnothing_of_this_name.so.9"});
  EXPECT_EQ(none.name, "");
  EXPECT_EQ(none.problem, "");
}

TEST(LibraryProbe, outlives_a_library_that_ends_its_process) {
  const LibraryProbe broken = probe_library({BROKEN_LIBRARY});
  EXPECT_EQ(broken.name, "");
  EXPECT_NE(broken.problem.find("Segmentation fault"), std::string::npos) << broken.problem;
  EXPECT_NE(broken.problem.find(BROKEN_LIBRARY), std::string::npos) << broken.problem;
}

}  // namespace
}  // namespace aon::tools
