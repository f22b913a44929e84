// Names as their authors wrote them.
#include <gtest/gtest.h>

#include "writers/symbols/readable_name.h"

namespace aon::symbols {
namespace {

TEST(ReadableName, demangles_cpp) {
  EXPECT_EQ(readable_name("_ZN4grid6Solver5sweepEi"), "grid::Solver::sweep(int)");
}

TEST(ReadableName, keeps_what_compilers_clone_readable) {
  EXPECT_EQ(readable_name("_ZN4grid4stepEv.constprop.0"), "grid::step() [clone .constprop.0]");
  EXPECT_EQ(readable_name("_ZN4grid4stepEv.cold"), "grid::step() [clone .cold]");
  EXPECT_EQ(readable_name("_ZN4grid4stepEv._omp_fn.0"), "grid::step() [clone ._omp_fn.0]");
  EXPECT_EQ(readable_name("work._omp_fn.0"), "work._omp_fn.0");
}

TEST(ReadableName, writes_module_procedures_of_fortran_as_module_and_name) {
  EXPECT_EQ(readable_name("__solver_MOD_sweep"), "solver::sweep");
  EXPECT_EQ(readable_name("_QMsolverPsweep"), "solver::sweep");
}

TEST(ReadableName, leaves_other_names_alone) {
  for (const char* name : {"main", "dgemm_", "__libc_start_main", "_Z", "_Znot a name", "__MOD_x",
                           "__a_MOD_", "_QM", "", "_RNvC6_123foo3bar"})
    EXPECT_EQ(readable_name(name), name);
}

TEST(ReadableName, survives_names_of_any_length) {
  const std::string deep = "_Z1f" + std::string(50'000, 'P') + "i";
  EXPECT_FALSE(readable_name(deep).empty());
  const std::string endless(1 << 20, 'x');
  EXPECT_EQ(readable_name("_Z" + endless).size(), endless.size() + 2);
}

}  // namespace
}  // namespace aon::symbols
