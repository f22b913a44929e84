#include "tools/library_probe.h"

#include <gtest/gtest.h>

#include <aon/cupti_library.h>

#include "tools/machine_check.h"

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

TEST(CuptiCheck, tells_a_wrong_path_and_restricted_counters_both) {
  LibraryProbe library;
  library.name = "/opt/libcupti.so.13";
  EXPECT_EQ(check_cupti(library, false).ability, Ability::kYes);
  EXPECT_EQ(check_cupti(library, false).remedy, "");
  EXPECT_EQ(check_cupti(library, true).ability, Ability::kLimited);
  library.remark = "AON_CUPTI_LIB: it is none";
  EXPECT_EQ(check_cupti(library, false).detail, "/opt/libcupti.so.13; AON_CUPTI_LIB: it is none");
  library.is_path_wrong = true;
  const Check both = check_cupti(library, true);
  EXPECT_EQ(both.ability, Ability::kLimited);
  EXPECT_EQ(both.detail,
            "/opt/libcupti.so.13; AON_CUPTI_LIB: it is none; "
            "counters are for administrators only");
  EXPECT_NE(both.remedy.find("in AON_CUPTI_LIB; echo options nvidia"), std::string::npos);
  EXPECT_EQ(check_cupti({}, true).ability, Ability::kNo);
}

TEST(CuptiCheck, names_another_file_where_one_ends_its_process) {
  EXPECT_NE(check_cupti({}, false).remedy.find("LD_LIBRARY_PATH"), std::string::npos);
  LibraryProbe broken;
  broken.problem = "loading /opt/libcupti.so.13 ends the process: Segmentation fault";
  EXPECT_EQ(check_cupti(broken, false).detail, broken.problem);
  EXPECT_EQ(check_cupti(broken, false).remedy, kCuptiPathRemedy);
}

}  // namespace
}  // namespace aon::tools
