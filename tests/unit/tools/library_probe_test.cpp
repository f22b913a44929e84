#include "tools/library_probe.h"

#include <gtest/gtest.h>

#include <aon/cupti_library.h>

#include "tools/machine_check.h"

extern const char* const kBrokenLibrary;  // the build writes it

namespace aon::tools {
namespace {

TEST(LibraryProbe, takes_the_first_that_loads) {
  const LibraryProbe found = probe_library({"libnothing_of_this_name.so.9", "libc.so.6"});
  EXPECT_EQ(found.name, "libc.so.6");
  EXPECT_EQ(found.problem, "");
}

TEST(LibraryProbe, calls_the_version_function) {
  // Any function without arguments that gives a positive number will do.
  EXPECT_GT(probe_library({"libc.so.6"}, {"getpid"}).version, 0u);
  EXPECT_EQ(probe_library({"libc.so.6"}, {"no_such_function"}).version, 0u);
  // int f(int* version), 0 on success: pipe() is one that has the first descriptor for it.
  EXPECT_GT(probe_library({"libc.so.6"}, {"pipe", VersionFunction::kFills}).version, 0u);
}

TEST(LibraryProbe, finds_nothing_without_a_problem) {
  const LibraryProbe none = probe_library({"libnothing_of_this_name.so.9"});
  EXPECT_EQ(none.name, "");
  EXPECT_EQ(none.problem, "");
}

TEST(LibraryProbe, outlives_a_library_that_ends_its_process) {
  const LibraryProbe broken = probe_library({kBrokenLibrary});
  EXPECT_EQ(broken.name, "");
  EXPECT_NE(broken.problem.find("Segmentation fault"), std::string::npos) << broken.problem;
  EXPECT_NE(broken.problem.find(kBrokenLibrary), std::string::npos) << broken.problem;
}

TEST(NcclCheck, says_what_its_version_tells) {
  LibraryProbe library;
  EXPECT_EQ(check_nccl(library).ability, Ability::kNo);
  library.name = "libnccl.so.2";
  library.version = 22809;
  EXPECT_EQ(check_nccl(library).ability, Ability::kYes);
  EXPECT_EQ(check_nccl(library).detail, "libnccl.so.2, 2.28.9");
  library.version = 22602;
  EXPECT_EQ(check_nccl(library).ability, Ability::kLimited);
  EXPECT_NE(check_nccl(library).detail.find("2.26.2: no times on the GPU"), std::string::npos);
  EXPECT_EQ(check_nccl(library).remedy, "NCCL 2.27 or later");
  library.version = 22205;
  EXPECT_EQ(check_nccl(library).ability, Ability::kLimited);
  EXPECT_NE(check_nccl(library).detail.find("2.22.5: takes no profiler"), std::string::npos);
  library.version = 0;
  EXPECT_EQ(check_nccl(library).detail, "libnccl.so.2");
}

TEST(NcclCheck, says_that_another_plugin_is_loaded) {
  LibraryProbe library;
  library.name = "libnccl.so.2";
  library.version = 22809;
  const Check check = check_nccl(library, {"V is left alone", "unset V"});
  EXPECT_EQ(check.ability, Ability::kNo);
  EXPECT_EQ(check.detail,
            "libnccl.so.2, 2.28.9; V is left alone: NCCL's operations are not recorded");
  EXPECT_EQ(check.remedy, "unset V");
}

TEST(DriverCheck, says_for_which_cuda_it_is) {
  LibraryProbe library;
  EXPECT_EQ(check_cuda_driver(library).ability, Ability::kNo);
  library.name = "libcuda.so.1";
  library.version = 13010;
  EXPECT_EQ(check_cuda_driver(library).detail, "libcuda.so.1, for CUDA up to 13.1");
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
  EXPECT_NE(both.remedy.find("in AON_CUPTI_LIB; CAP_SYS_ADMIN"), std::string::npos);
  EXPECT_EQ(check_cupti({}, true).ability, Ability::kNo);
}

TEST(CuptiCheck, tells_the_version_and_what_it_leaves_out) {
  LibraryProbe library;
  library.name = "/opt/libcupti.so.13";
  const auto detail = [&](unsigned version, unsigned driver_version) {
    library.version = version;
    return check_cupti(library, false, driver_version).detail.substr(library.name.size());
  };
  EXPECT_EQ(detail(0, 13030), "");
  EXPECT_EQ(detail(130001, 13030),
            ", version 130001 (CUDA 13.0 update 1); one client at a time (several: CUPTI of CUDA "
            "13.3 and a driver of r610 or later)");
  EXPECT_EQ(detail(130300, 13030), ", version 130300 (CUDA 13.3); several clients at a time");
  EXPECT_EQ(detail(130300, 13020),
            ", version 130300 (CUDA 13.3); one client at a time (several: a driver of r610 or "
            "later)");
  EXPECT_EQ(detail(130300, 0),
            ", version 130300 (CUDA 13.3); several clients at a time with a driver of r610 or "
            "later");
  EXPECT_NE(detail(130000, 0).find("does not tell of waiting"), std::string::npos);
  EXPECT_NE(detail(23, 0).find("version 23 (CUDA 12 or older); it may crash when records are "
                               "flushed; graphs are recorded node by node"),
            std::string::npos);
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
