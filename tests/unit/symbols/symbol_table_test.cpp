// Which of several names an address gets: the rules of symbol_table.h, one by one.
#include "writers/symbols/symbol_table.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/symbols/elf_maker.h"

namespace aon::symbols {
namespace {

using test::MadeSymbol;

/// A table of exactly these symbols, kept with the file that its names point into.
class Made {
 public:
  explicit Made(std::vector<uint8_t> bytes) {
    Result<ElfFile> file = ElfFile::from_memory(std::move(bytes), "made");
    EXPECT_TRUE(file.has_value()) << (file ? "" : file.error().message);
    if (!file) return;
    file_ = std::make_unique<ElfFile>(std::move(*file));
    table_.add(*file_);
    table_.add_plt(*file_);
    table_.finish();
  }
  explicit Made(const std::vector<MadeSymbol>& symbols) : Made(test::make_elf(symbols)) {}

  std::string name(uint64_t address) const {
    const uint32_t symbol = table_.find(address);
    return symbol == SymbolTable::kNone ? "" : std::string(table_.name(symbol));
  }

 private:
  std::unique_ptr<ElfFile> file_;
  SymbolTable table_;
};

TEST(SymbolTable, covers_each_symbol_from_its_first_to_its_last_byte) {
  const Made made({{"one", 0x1000, 0x10}, {"two", 0x1020, 0x10}});
  EXPECT_EQ(made.name(0xfff), "");
  EXPECT_EQ(made.name(0x1000), "one");
  EXPECT_EQ(made.name(0x100f), "one");
  EXPECT_EQ(made.name(0x1010), "");
  EXPECT_EQ(made.name(0x1020), "two");
  EXPECT_EQ(made.name(0x1030), "");
  EXPECT_EQ(made.name(~uint64_t{0}), "");
}

TEST(SymbolTable, chooses_among_aliases_always_the_same) {
  std::vector<MadeSymbol> aliases = {{"local", 0x1000, 0x20, STB_LOCAL},
                                     {"weak", 0x1000, 0x20, STB_WEAK},
                                     {"global_long_name", 0x1000, 0x20},
                                     {"global_b", 0x1000, 0x20},
                                     {"global_a", 0x1000, 0x20},
                                     {"sh", 0x1000, 0x10},
                                     {"label", 0x1000, 0x20, STB_GLOBAL, STT_NOTYPE}};
  for (int turn = 0; turn < 7; ++turn) {
    std::rotate(aliases.begin(), aliases.begin() + 1, aliases.end());
    EXPECT_EQ(Made(aliases).name(0x1001), "global_a");
  }
}

TEST(SymbolTable, prefers_a_local_name_with_size_to_a_global_without) {
  const Made made({{"global", 0x1000, 0}, {"local", 0x1000, 0x10, STB_LOCAL}});
  EXPECT_EQ(made.name(0x1008), "local");
}

TEST(SymbolTable, reaches_from_a_symbol_without_size_to_the_next_or_the_sections_end) {
  const Made made({{"one", 0x1000, 0}, {"two", 0x1100, 0x10}, {"last", 0x1200, 0}});
  EXPECT_EQ(made.name(0x10ff), "one");
  EXPECT_EQ(made.name(0x1100), "two");
  EXPECT_EQ(made.name(0x1110), "");
  EXPECT_EQ(made.name(0x13ff), "last");
  EXPECT_EQ(made.name(0x1400), "");
}

TEST(SymbolTable, leaves_out_labels_inside_functions_and_markers) {
  const Made made({{"work", 0x1000, 0x100},
                   {"inside", 0x1010, 0, STB_LOCAL, STT_NOTYPE},
                   {"$x", 0x1200, 0, STB_LOCAL, STT_NOTYPE},
                   {".L7", 0x1210, 0, STB_LOCAL, STT_NOTYPE},
                   {"", 0x1220, 0x10}});
  EXPECT_EQ(made.name(0x1020), "work");
  EXPECT_EQ(made.name(0x1200), "");
  EXPECT_EQ(made.name(0x1210), "");
  EXPECT_EQ(made.name(0x1220), "");
}

TEST(SymbolTable, gives_the_innermost_of_nested_and_the_last_of_overlapping_ranges) {
  const Made made({{"outer", 0x1000, 0x100},
                   {"inner", 0x1040, 0x20},
                   {"over", 0x10f0, 0x20},
                   {"after", 0x1120, 0x10}});
  EXPECT_EQ(made.name(0x103f), "outer");
  EXPECT_EQ(made.name(0x1040), "inner");
  EXPECT_EQ(made.name(0x1060), "outer");
  EXPECT_EQ(made.name(0x10ff), "over");
  EXPECT_EQ(made.name(0x110f), "over");
  EXPECT_EQ(made.name(0x1110), "");
  EXPECT_EQ(made.name(0x1120), "after");
}

TEST(SymbolTable, refuses_data_and_what_lies_outside_of_code) {
  const Made made({{"data", 0x1000, 0x10, STB_GLOBAL, STT_OBJECT},
                   {"outside", 0x9000, 0x10},
                   {"too_long", 0x13f0, ~uint64_t{0} - 0x13f0},
                   {"wraps", 0x1010, ~uint64_t{0}}});
  EXPECT_EQ(made.name(0x1000), "");
  EXPECT_EQ(made.name(0x9000), "");
  EXPECT_EQ(made.name(0x13ff), "too_long");
  EXPECT_EQ(made.name(0x1400), "");
}

TEST(SymbolTable, drops_the_version_behind_a_name) {
  EXPECT_EQ(Made({{"memcpy@@GLIBC_2.14", 0x1000, 0x10}}).name(0x1000), "memcpy");
}

TEST(SymbolTable, reads_every_class_and_byte_order) {
  for (const int elf_class : {ELFCLASS32, ELFCLASS64})
    for (const uint8_t encoding : {ELFDATA2LSB, ELFDATA2MSB}) {
      const Made made(test::make_elf({{"work", 0x1010, 0x20}}, elf_class, encoding));
      EXPECT_EQ(made.name(0x1018), "work") << elf_class << " " << int{encoding};
    }
}

TEST(ElfFile, knows_where_bytes_of_the_file_are_loaded) {
  const Result<ElfFile> file = ElfFile::from_memory(test::make_elf({}), "made");
  ASSERT_TRUE(file.has_value());
  const ElfSection* text = file->section(".text");
  ASSERT_NE(text, nullptr);
  EXPECT_EQ(file->address_of(text->header.sh_offset + 7), 0x1007u);
  EXPECT_EQ(file->address_of(text->header.sh_offset + test::kCodeBytes), std::nullopt);
  EXPECT_EQ(file->address_of(~uint64_t{0}), std::nullopt);
}

}  // namespace
}  // namespace aon::symbols
