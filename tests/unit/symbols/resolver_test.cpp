// What a user sees of a program: names in every form of link, aliases, PLT, order of the answers.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include "tests/unit/symbols/made.h"

namespace aon::symbols::test {
namespace {

class ResolverForms : public testing::TestWithParam<const char*> {};

TEST_P(ResolverForms, names_global_and_static_functions) {
  const std::string path = made(GetParam());
  const Seen seen = resolve(
      {path, {}},
      {offset_of(path, "plain"), offset_of(path, "hidden_work") + 2, offset_of(path, "main")});
  EXPECT_EQ(seen.error, "");
  EXPECT_EQ(seen.name(0), "plain");
  EXPECT_EQ(seen.name(1), "hidden_work");
  EXPECT_EQ(seen.name(2), "main");
  EXPECT_EQ(seen.report.named_count, 3u);
  EXPECT_EQ(seen.report.unnamed_count, 0u);
}

INSTANTIATE_TEST_SUITE_P(links, ResolverForms,
                         testing::Values("c_pie", "c_no_pie", "c_static", "c_without_id"),
                         [](const auto& form) { return std::string(form.param); });

TEST(Resolver, prefers_the_global_name_to_the_weak_alias) {
  const std::string path = made("c_pie");
  EXPECT_EQ(resolve({path, {}}, {offset_of(path, "weak_name")}).name(0), "first_name");
}

TEST(Resolver, names_a_label_without_size) {
  const std::string path = made("c_pie");
  const uint64_t offset = offset_of(path, "label_without_size");
  const Seen seen = resolve({path, {}}, {offset, offset + 2});
  EXPECT_EQ(seen.name(0), "label_without_size");
  EXPECT_EQ(seen.name(1), "label_without_size");
}

TEST(Resolver, answers_in_the_order_asked_also_twice_the_same) {
  const std::string path = made("c_pie");
  const uint64_t last = offset_of(path, "main"), first = offset_of(path, "plain");
  const Seen seen = resolve({path, {}}, {last, first, last, ~uint64_t{0}, 0});
  EXPECT_EQ(seen.name(0), "main");
  EXPECT_EQ(seen.name(1), "plain");
  EXPECT_EQ(seen.name(2), "main");
  EXPECT_TRUE(seen.frames[3].empty());
  EXPECT_TRUE(seen.frames[4].empty());
  EXPECT_EQ(seen.report.named_count, 3u);
  EXPECT_EQ(seen.report.unnamed_count, 2u);
}

/// Address of a PLT entry as objdump, which decodes it by itself, prints it.
uint64_t plt_offset(const std::string& path, const std::string& name) {
  const std::string line = output_of("objdump -d '" + path + "' | grep '<" + name + "@plt>:'");
  EXPECT_NE(line, "");
  return Segments(path).offset_of(std::strtoull(line.c_str(), nullptr, 16));
}

TEST(Resolver, names_plt_entries_lazy_and_bound_at_start) {
  for (const char* program : {"c_pie", "c_now", "c_ibt", "c_stripped"}) {
    const std::string path = made(program);
    EXPECT_EQ(resolve({path, {}}, {plt_offset(path, "qsort")}).name(0), "qsort@plt") << program;
  }
}

TEST(Resolver, names_functions_of_a_32_bit_program) {
  const std::string path = made("c_32_bit");
  EXPECT_EQ(resolve({path, {}}, {offset_of(path, "plain")}).name(0), "plain");
}

TEST(Resolver, keeps_texts_while_it_lives) {
  Resolver resolver;
  const std::string path = made("c_pie");
  std::vector<std::string_view> names;
  for (int i = 0; i < 2; ++i) {
    const std::vector<uint64_t> offsets = {offset_of(path, "plain")};
    const auto report = resolver.resolve(
        {path, {}}, offsets,
        [&](size_t, std::span<const Frame> frames) { names.push_back(frames.back().function); });
    ASSERT_TRUE(report.has_value());
  }
  EXPECT_EQ(names[0], "plain");
  EXPECT_EQ(names[0].data(), names[1].data());
}

TEST(Resolver, names_exported_functions_of_the_c_library) {
  Dl_info info{};
  void* address = dlsym(RTLD_DEFAULT, "qsort");
  ASSERT_NE(dladdr(address, &info), 0);
  const auto offset =
      static_cast<uint64_t>(static_cast<char*>(address) - static_cast<char*>(info.dli_fbase));
  const std::string path = std::filesystem::canonical(info.dli_fname);
  const Seen seen = resolve({path, {}}, {Segments(path).offset_of(offset)});
  EXPECT_THAT(seen.name(0), testing::HasSubstr("qsort"));
}

#ifdef AON_HAS_FORTRAN
TEST(Resolver, names_fortran_procedures) {
  const std::string path = made("fortran");
  const Seen seen =
      resolve({path, {}}, {offset_of(path, "__solver_MOD_sweep"), offset_of(path, "outside_"),
                           offset_of(path, "relax.0"), offset_of(path, "MAIN__")});
  EXPECT_EQ(seen.name(0), "solver::sweep");
  EXPECT_EQ(seen.name(1), "outside_");
  EXPECT_EQ(seen.name(2), "relax.0");
  EXPECT_EQ(seen.name(3), "MAIN__");
  EXPECT_EQ(seen.frames[1].front().line, line_of("solver.f90", "subroutine outside(x)"));
}
#endif

}  // namespace
}  // namespace aon::symbols::test
