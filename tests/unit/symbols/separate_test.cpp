// Names and lines that are not in the program itself, and programs that are not those that ran.
#include <gmock/gmock.h>
#include <sys/auxv.h>

#include <cstdlib>

#include "tests/unit/symbols/made.h"

namespace aon::symbols::test {
namespace {

using testing::HasSubstr;

ResolverOptions searching(const std::string& directory) {
  ResolverOptions options;
  options.search.directories = {directory};
  return options;
}

TEST(Separate, says_that_a_stripped_program_has_only_exported_names) {
  const Seen seen = resolve({made("c_stripped"), {}}, {offset_of(made("c_pie"), "hidden_work")},
                            searching("/none"));
  EXPECT_EQ(seen.error, "");
  EXPECT_EQ(seen.name(0), "");
  EXPECT_EQ(seen.report.unnamed_count, 1u);
  EXPECT_THAT(seen.report.remark, HasSubstr("stripped"));
  EXPECT_THAT(seen.report.remark, HasSubstr("install its debug file"));
}

TEST(Separate, tells_where_the_functions_of_a_stripped_program_begin) {
  const std::string names = made("c_pie");
  const uint64_t hidden = offset_of(names, "hidden_work"), first = offset_of(names, "first_name");
  const Seen seen = resolve({made("c_stripped"), {}},
                            {hidden, hidden + 1, first + 3, offset_of(names, "label_without_size")},
                            searching("/none"));
  ASSERT_EQ(seen.error, "");
  ASSERT_EQ(seen.frames[0].size(), 1u);
  EXPECT_EQ(seen.frames[0][0].begin_offset, hidden);
  ASSERT_EQ(seen.frames[1].size(), 1u);
  EXPECT_EQ(seen.frames[1][0].begin_offset, hidden);
  ASSERT_EQ(seen.frames[2].size(), 1u);
  EXPECT_EQ(seen.frames[2][0].begin_offset, first);
  EXPECT_TRUE(seen.frames[3].empty());  // assembler without a description
  EXPECT_EQ(seen.report.unnamed_count, 4u);
  EXPECT_EQ(seen.report.named_count, 0u);
}

TEST(Separate, a_program_with_names_needs_no_beginnings) {
  const uint64_t offset = offset_of(made("c_pie"), "hidden_work");
  const Seen seen = resolve({made("c_pie"), {}}, {offset}, searching("/none"));
  EXPECT_EQ(seen.frames[0].back().begin_offset, 0u);
}

TEST(Separate, finds_the_debug_file_by_build_id) {
  const Seen seen = resolve({made("c_stripped"), build_id_of(made("c_pie"))},
                            {offset_of(made("c_pie"), "hidden_work")}, searching(made("debug")));
  EXPECT_EQ(seen.name(0), "hidden_work");
  EXPECT_GT(seen.report.line_count, 0u);
  EXPECT_EQ(seen.report.remark, "");
  EXPECT_THAT(seen.report.source, HasSubstr(".debug"));
}

TEST(Separate, takes_only_lines_from_it_when_the_program_has_names) {
  const Seen seen = resolve({made("c_names"), {}}, {offset_of(made("c_pie"), "hidden_work")},
                            searching(made("debug")));
  EXPECT_EQ(seen.name(0), "hidden_work");
  EXPECT_EQ(seen.report.source, made("c_names"));
  EXPECT_GT(seen.report.line_count, 0u);
}

#ifdef AON_HAS_LZMA
TEST(Separate, reads_the_packed_symbol_table) {
  const Seen seen = resolve({made("c_packed"), {}}, {offset_of(made("c_pie"), "hidden_work")},
                            searching("/none"));
  EXPECT_EQ(seen.name(0), "hidden_work");
  EXPECT_THAT(seen.report.source, HasSubstr(".gnu_debugdata"));
}

TEST(Separate, finds_the_debug_file_by_link_and_checksum) {
  const uint64_t offset = offset_of(made("c_without_id"), "hidden_work");
  EXPECT_EQ(resolve({made("linked/c_linked"), {}}, {offset}, searching("/none")).name(0),
            "hidden_work");
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path(".debug"));
  std::filesystem::copy(made("linked/c_linked"), folder.path("c_linked"));
  write_content(folder.path(".debug/c_linked.debug"),
                content(made("linked/.debug/c_linked.debug")) + "another build");
  EXPECT_EQ(resolve({folder.path("c_linked"), {}}, {offset}, searching("/none")).name(0), "");
}
#endif

TEST(Separate, refuses_a_program_that_was_replaced) {
  const std::string path = made("c_pie");
  const Seen seen =
      resolve({path, std::string(20, 'x')}, {offset_of(path, "plain")}, searching("/none"));
  EXPECT_EQ(seen.code, Code::kInvalid);
  EXPECT_THAT(seen.error, HasSubstr("build-id differs"));
  EXPECT_THAT(seen.error, HasSubstr(path));
}

TEST(Separate, takes_the_copy_with_the_build_id_for_a_program_that_was_replaced_or_deleted) {
  const std::string id = build_id_of(made("c_pie"));
  const uint64_t offset = offset_of(made("c_pie"), "plain");
  for (const std::string& path :
       {made("c_static"), std::string("/none/c_pie"), made("c_static") + " (deleted)"}) {
    const Seen seen = resolve({path, id}, {offset}, searching(made("copies")));
    EXPECT_EQ(seen.name(0), "plain") << path << seen.error;
  }
}

TEST(Separate, does_not_guess_for_a_deleted_program) {
  const Seen seen = resolve({made("c_pie") + " (deleted)", {}}, {0x1000}, searching("/none"));
  EXPECT_EQ(seen.code, Code::kNotFound);
  EXPECT_THAT(seen.error, HasSubstr("was deleted"));
}

/// A server of debuginfod, as a folder: elfutils' own tests do it like this.
class Debuginfod : public testing::Test {
 protected:
  Debuginfod() {
    setenv("DEBUGINFOD_URLS", ("file://" + made("server")).c_str(), 1);
    setenv("DEBUGINFOD_CACHE_PATH", cache_.path("cache").c_str(), 1);
  }
  ~Debuginfod() override {
    unsetenv("DEBUGINFOD_URLS");
    unsetenv("DEBUGINFOD_CACHE_PATH");
  }
  static std::string name_with(const ResolverOptions& options) {
    return resolve({made("c_stripped"), {}}, {offset_of(made("c_pie"), "hidden_work")}, options)
        .name(0);
  }

  TemporaryFolder cache_;
};

TEST_F(Debuginfod, is_asked_only_when_allowed_and_set) {
  ResolverOptions options = searching("/none");
  EXPECT_EQ(name_with(options), "");
  options.search.allows_debuginfod = true;
  EXPECT_EQ(name_with(options), "hidden_work");
  std::filesystem::remove_all(cache_.path("cache"));
  unsetenv("DEBUGINFOD_URLS");
  EXPECT_EQ(name_with(options), "");
}

TEST(Vdso, is_named_only_when_it_is_the_one_that_ran) {
  if (getauxval(AT_SYSINFO_EHDR) == 0) GTEST_SKIP() << "no vdso here";
  EXPECT_THAT(resolve({"[vdso]", std::string(20, 'x')}, {0x800}).error,
              HasSubstr("another kernel"));
  const auto* vdso = reinterpret_cast<const char*>(getauxval(AT_SYSINFO_EHDR));
  const TemporaryFolder folder;
  write_content(folder.path("vdso"), std::string(vdso, 8192));
  const std::string symbol = output_of("nm -D '" + folder.path("vdso") + "' | grep -w T | head -1");
  const uint64_t address = std::strtoull(symbol.c_str(), nullptr, 16);
  const Seen seen = resolve({"[vdso]", build_id_of(folder.path("vdso"))}, {address});
  EXPECT_NE(seen.name(0), "") << seen.error;
}

}  // namespace
}  // namespace aon::symbols::test
