// Files that are no programs, damaged, cut, or change while they are read.
#include <elf.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstring>

#include "core/base/elf_file.h"
#include "tests/unit/sanitizer.h"
#include "tests/unit/symbols/elf_maker.h"
#include "tests/unit/symbols/made.h"
#include "writers/symbols/helper.h"
#include "writers/symbols/symbol_table.h"

namespace aon::symbols::test {
namespace {

using testing::HasSubstr;

TEST(BadInput, is_told_apart) {
  const TemporaryFolder folder;
  write_content(folder.path("text"), "#!/bin/sh\n");
  write_content(folder.path("empty"), "");
  ASSERT_EQ(mkfifo(folder.path("fifo").c_str(), 0600), 0);
  const auto error_of = [](const std::string& path) { return resolve({path, {}}, {0x1000}); };
  EXPECT_EQ(error_of(folder.path("none")).code, Code::kNotFound);
  EXPECT_EQ(error_of(folder.path("")).code, Code::kInvalid);
  EXPECT_EQ(error_of(folder.path("fifo")).code, Code::kInvalid);
  EXPECT_EQ(error_of("/dev/zero").code, Code::kInvalid);
  EXPECT_THAT(error_of(folder.path("text")).error, HasSubstr("is not an ELF file"));
  EXPECT_EQ(error_of(folder.path("empty")).code, Code::kInvalid);
  for (const char* name : {"", "[heap]", "[stack]", "//anon"})
    EXPECT_THAT(error_of(name).error, HasSubstr("is no file")) << name;
}

TEST(BadInput, an_object_file_is_no_program) {
  const TemporaryFolder folder;
  std::string bytes = content(made("c_pie"));
  bytes[16] = ET_REL;
  write_content(folder.path("object"), bytes);
  EXPECT_THAT(resolve({folder.path("object"), {}}, {0}).error, HasSubstr("neither a program"));
}

TEST(BadInput, a_program_without_section_headers_has_no_names) {
  const TemporaryFolder folder;
  std::string bytes = content(made("c_pie"));
  std::memset(bytes.data() + offsetof(Elf64_Ehdr, e_shoff), 0, sizeof(Elf64_Off));
  std::memset(bytes.data() + offsetof(Elf64_Ehdr, e_shnum), 0, 2 * sizeof(Elf64_Half));
  write_content(folder.path("bare"), bytes);
  const Seen seen = resolve({folder.path("bare"), {}}, {offset_of(made("c_pie"), "plain")},
                            {.search = {.directories = {}}});
  EXPECT_EQ(seen.error, "");
  EXPECT_EQ(seen.name(0), "");
  EXPECT_THAT(seen.report.remark, HasSubstr("stripped"));
}

TEST(BadInput, sections_that_say_they_are_huge_cost_nothing) {
  const TemporaryFolder folder;
  std::string bytes = content(made("c_pie"));
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  for (size_t i = 1; i < header.e_shnum; ++i) {
    char* at = bytes.data() + header.e_shoff + i * sizeof(Elf64_Shdr);
    Elf64_Shdr section;
    std::memcpy(&section, at, sizeof(section));
    if (section.sh_type == SHT_SYMTAB || section.sh_type == SHT_STRTAB)
      section.sh_size = uint64_t{1} << 60;
    std::memcpy(at, &section, sizeof(section));
  }
  write_content(folder.path("huge"), bytes);
  const Seen seen = resolve({folder.path("huge"), {}}, {offset_of(made("c_pie"), "plain")});
  EXPECT_EQ(seen.name(0), "");
}

TEST(BadInput, a_cut_file_is_named_as_far_as_it_goes) {
  const TemporaryFolder folder;
  const std::string bytes = content(made("cpp_dwarf5"));
  const uint64_t offset = offset_of(made("cpp_dwarf5"), "main");
  for (size_t part = 0; part < 40; ++part) {
    write_content(folder.path("cut"), bytes.substr(0, bytes.size() * part / 40));
    const Seen seen = resolve({folder.path("cut"), {}}, {offset});
    EXPECT_TRUE(!seen.error.empty() || seen.frames.size() == 1) << part;
  }
}

TEST(BadInput, a_file_that_shrinks_while_it_is_read_hurts_only_the_helper) {
  const TemporaryFolder folder;
  const std::string path = folder.path("shrinks");
  write_content(path, content(made("c_static")));
  auto helper = Helper::start({uint64_t{64} << 20, 60}, [&](int) {
    const Result<ElfFile> file = ElfFile::open(path);
    std::filesystem::resize_file(path, 4096);
    SymbolTable table;
    table.add(*file);  // what is mapped but no longer in the file is a SIGBUS
    table.finish();
  });
  ASSERT_TRUE(helper.has_value());
  char nothing;
  EXPECT_EQ(helper->read(&nothing, 1), 0u);
  EXPECT_THAT(helper->end(), HasSubstr("crashed: signal 7"));
}

TEST(BadInput, a_file_that_needs_more_memory_than_allowed_is_told) {
#ifdef AON_TEST_IS_SANITIZED
  GTEST_SKIP() << "the sanitizer's allocator ends the process in its own way";
#endif
  ResolverOptions options;
  options.memory_bytes = 0;
  const Seen seen = resolve({made("c_static"), {}}, {offset_of(made("c_static"), "main")}, options);
  EXPECT_EQ(seen.code, Code::kDamaged);
  EXPECT_THAT(seen.error, HasSubstr("c_static: the reader"));
}

TEST(BadInput, programs_of_other_machines_are_named) {
  const TemporaryFolder folder;
  for (const int elf_class : {ELFCLASS32, ELFCLASS64}) {
    const std::vector<uint8_t> bytes = make_elf({{"work", 0x1010, 0x20}}, elf_class, ELFDATA2MSB);
    write_content(folder.path("big"), {bytes.begin(), bytes.end()});
    const Result<ElfFile> file = ElfFile::open(folder.path("big"));
    ASSERT_TRUE(file.has_value());
    const uint64_t offset = file->section(".text")->header.sh_offset + 0x18;
    EXPECT_EQ(resolve({folder.path("big"), {}}, {offset}).name(0), "work");
  }
}

}  // namespace
}  // namespace aon::symbols::test
