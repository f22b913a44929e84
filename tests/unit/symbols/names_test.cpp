// Names as their authors wrote them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "writers/symbols/readable_name.h"
#include "writers/symbols/readable_names.h"

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
  EXPECT_EQ(readable_name("_Z" + endless).size(), kMaxNameBytes);
}

/// `depth` pairs in each other, each of twice the one in it: _Z1f1PIS_IiiES0_E for two.
std::string pairs(int depth) {
  std::string name = "_Z1f1PI";
  for (int i = 1; i < depth; ++i) name += "S_I";
  name += "iiE";
  for (int i = 0; i + 1 < depth; ++i)
    name += "S" + std::string(1, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i]) + "_E";
  return name;
}

TEST(ReadableName, cuts_names_that_stand_for_much_more) {
  EXPECT_EQ(readable_name(pairs(2)), "f(P<P<int, int>, P<int, int> >)");
  const std::string name = readable_name(pairs(16));
  EXPECT_EQ(name.size(), kMaxNameBytes);
  EXPECT_EQ(name.substr(name.size() - 3), "...");
  EXPECT_EQ(name.rfind("f(P<P<P<", 0), 0u);
}

TEST(ReadableName, is_cut_at_a_character) {
  std::string name(kMaxNameBytes - 4, 'a');
  name += "\xe2\x82\xac and more";
  EXPECT_EQ(readable_name(name), name.substr(0, kMaxNameBytes - 4) + "...");
}

TEST(ReadableName, of_many_leaves_what_has_no_end) {
  const std::vector<std::string> names = {"_Z1fv", pairs(10), pairs(36), "main", pairs(11)};
  const std::vector<std::string> readable = readable_names(names);
  ASSERT_EQ(readable.size(), names.size());
  EXPECT_EQ(readable[0], "f()");
  EXPECT_EQ(readable[1], readable_name(pairs(10)));
  EXPECT_EQ(readable[2], pairs(36));
  EXPECT_EQ(readable[3], "main");
  EXPECT_EQ(readable[4], readable_name(pairs(11)));
}

}  // namespace
}  // namespace aon::symbols
