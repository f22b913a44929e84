// Call paths of several processes become one tree, and what has no name keeps its place.
#include <aon/definition.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/auxv.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/model.h"
#include "writers/profile/call_samples.h"

namespace aon::writers {
namespace {

using test::NodeSpool;
using test::TemporaryFolder;
using testing::ElementsAre;

/// A CallPathsDefinition with its nodes behind it, as one payload.
struct Paths {
  CallPathsDefinition definition;
  CallPathNode nodes[4];
};
static_assert(sizeof(Paths) == sizeof(CallPathsDefinition) + 4 * sizeof(CallPathNode));

Paths paths_of(uint32_t process, uint32_t first_id, std::initializer_list<CallPathNode> nodes) {
  Paths paths{{process, first_id, static_cast<uint32_t>(nodes.size()), 0}, {}};
  std::copy(nodes.begin(), nodes.end(), paths.nodes);
  return paths;
}

class CallPathsTest : public testing::Test {
 protected:
  CallPathsTest() : node_(job_.path(), "n1") {}

  void add_process(uint32_t process, uint32_t mapping, uint64_t start) {
    node_.add_process(process, static_cast<int32_t>(process), 2, {});
    MappingDefinition definition{};
    definition.process = process;
    definition.id = mapping;
    definition.start = start;
    definition.end = start + 0x10000;
    node_.define(process, DefinitionType::kMapping, definition, {"/nowhere/solver"});
  }
  std::unique_ptr<JobModel> build() {
    node_.finish();
    auto parts = build_model(job_.path(), kDefaultOtf2Locations);
    EXPECT_TRUE(parts.has_value());
    return std::move(*parts);
  }
  /// Names of the path of a process, outermost first.
  static std::vector<std::string> names(const Model& model, size_t group, uint32_t local) {
    std::vector<std::string> names;
    std::optional<uint32_t> at = model.groups[group].call_path_map.at(local);
    for (; at && *at < model.call_paths.size(); at = model.call_paths[*at].parent)
      names.insert(names.begin(), model.functions[model.call_paths[*at].function].name);
    return names;
  }

  TemporaryFolder job_;
  NodeSpool node_;
};

TEST_F(CallPathsTest, the_same_code_at_other_addresses_is_one_path) {
  add_process(0, 7, 0x1000);
  add_process(1, 3, 0x999000);
  node_.define(0, DefinitionType::kCallPaths,
               paths_of(0, 100, {{kNoCallPath, 7, 0x10}, {100, 7, 0x20}}));
  node_.define(1, DefinitionType::kCallPaths,
               paths_of(1, 5, {{kNoCallPath, 3, 0x10}, {5, 3, 0x20}}));
  const auto parts = build();
  EXPECT_EQ(parts->model.call_paths.size(), 2u);
  EXPECT_THAT(names(parts->model, 0, 101), ElementsAre("solver+0x10", "solver+0x20"));
  EXPECT_EQ(parts->model.groups[0].call_path_map.at(101),
            parts->model.groups[1].call_path_map.at(6));
  ASSERT_EQ(parts->model.symbol_reports.size(), 1u);
  EXPECT_EQ(parts->model.symbol_reports[0].unnamed_count, 2u);
  EXPECT_NE(parts->model.symbol_reports[0].remark, "");
}

TEST_F(CallPathsTest, a_module_of_any_name_is_opened_and_has_a_name_for_writers) {
  const std::string path = job_.path().string() + "/a\nb\xff";
  std::filesystem::copy_file("/bin/true", path);
  node_.add_process(0, 0, 2, {});
  MappingDefinition mapping{};
  mapping.id = 7;
  node_.define(0, DefinitionType::kMapping, mapping, {path});
  node_.define(0, DefinitionType::kCallPaths, paths_of(0, 100, {{kNoCallPath, 7, 0}}));
  const auto parts = build();
  ASSERT_EQ(parts->model.symbol_reports.size(), 1u);
  const SymbolReport& report = parts->model.symbol_reports[0];
  EXPECT_EQ(report.module, job_.path().string() + "/a?b?");
  EXPECT_THAT(report.remark, testing::Not(testing::HasSubstr("No such file")));
  EXPECT_THAT(names(parts->model, 0, 100), ElementsAre("a?b?+0x0"));
  EXPECT_EQ(parts->model.functions[0].module, job_.path().string() + "/a?b?");
}

/// Build-id and the first exported function of this process's [vdso].
struct Vdso {
  std::string build_id;
  uint64_t offset = 0;
  std::string function;
};
Vdso own_vdso() {
  Vdso vdso;
  auto* begin = reinterpret_cast<char*>(getauxval(AT_SYSINFO_EHDR));
  if (begin == nullptr) return vdso;
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(begin);
  const auto* segments = reinterpret_cast<const ElfW(Phdr)*>(begin + header->e_phoff);
  for (size_t i = 0; i < header->e_phnum; ++i) {
    if (segments[i].p_type != PT_NOTE) continue;
    const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(begin + segments[i].p_offset);
    const char* end = begin + segments[i].p_offset + segments[i].p_filesz;
    while (reinterpret_cast<const char*>(note) < end) {
      const char* name = reinterpret_cast<const char*>(note + 1);
      const char* content = name + (note->n_namesz + 3) / 4 * 4;
      if (note->n_type == NT_GNU_BUILD_ID) vdso.build_id.assign(content, note->n_descsz);
      note = reinterpret_cast<const ElfW(Nhdr)*>(content + (note->n_descsz + 3) / 4 * 4);
    }
  }
  const auto* sections = reinterpret_cast<const ElfW(Shdr)*>(begin + header->e_shoff);
  for (size_t i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_DYNSYM) continue;
    const auto* symbols = reinterpret_cast<const ElfW(Sym)*>(begin + sections[i].sh_offset);
    const char* names = begin + sections[sections[i].sh_link].sh_offset;
    for (size_t s = 0; s < sections[i].sh_size / sizeof(ElfW(Sym)); ++s) {
      if (std::strcmp(names + symbols[s].st_name, "__vdso_clock_gettime") != 0) continue;
      vdso.offset = symbols[s].st_value;
      vdso.function = names + symbols[s].st_name;
    }
  }
  return vdso;
}

TEST_F(CallPathsTest, functions_of_the_kernels_own_library_have_names) {
  const Vdso vdso = own_vdso();
  if (vdso.function.empty() || vdso.build_id.size() != 20) GTEST_SKIP() << "no vdso here";
  node_.add_process(0, 0, 2, {});
  MappingDefinition mapping{};
  mapping.id = 9;
  mapping.build_id_bytes = 20;
  std::memcpy(mapping.build_id, vdso.build_id.data(), 20);
  node_.define(0, DefinitionType::kMapping, mapping, {"[vdso]"});
  node_.define(0, DefinitionType::kCallPaths,
               paths_of(0, 0, {{kNoCallPath, 9, vdso.offset}, {kNoCallPath, 9, vdso.offset + 4}}));
  const auto parts = build();
  // One of its aliases (clock_gettime, __vdso_clock_gettime), and the same at both places.
  EXPECT_THAT(names(parts->model, 0, 0), ElementsAre(testing::HasSubstr("clock_gettime")));
  EXPECT_EQ(names(parts->model, 0, 0), names(parts->model, 0, 1));
}

/// Two functions of this program whose names are no UTF-8, and not the same.
[[gnu::used]] int old_name() __asm__(
    "a\xfc"
    "b");
[[gnu::used]] int other_name() __asm__(
    "a\xfd"
    "b");
int old_name() { return 1; }
int other_name() { return 2; }

/// Where the code at `address` is in this program's file.
uint64_t own_offset(const void* address) {
  struct Search {
    uintptr_t address;
    uint64_t offset;
  } search{reinterpret_cast<uintptr_t>(address), 0};
  const auto look = [](dl_phdr_info* module, size_t, void* given) {
    auto* wanted = static_cast<Search*>(given);
    for (size_t i = 0; i < module->dlpi_phnum; ++i) {
      const ElfW(Phdr)& segment = module->dlpi_phdr[i];
      const uintptr_t begin = module->dlpi_addr + segment.p_vaddr;
      if (segment.p_type != PT_LOAD || wanted->address - begin >= segment.p_filesz) continue;
      wanted->offset = wanted->address - begin + segment.p_offset;
    }
    return 1;  // the first is the program
  };
  dl_iterate_phdr(look, &search);
  return search.offset;
}

TEST_F(CallPathsTest, names_of_files_are_utf_8_and_stay_apart) {
  node_.add_process(0, 0, 1, {});
  MappingDefinition mapping{};
  mapping.id = 9;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  node_.define(0, DefinitionType::kMapping, mapping, {program});
  const uint64_t one = own_offset(reinterpret_cast<const void*>(&old_name));
  const uint64_t other = own_offset(reinterpret_cast<const void*>(&other_name));
  node_.define(0, DefinitionType::kCallPaths,
               paths_of(0, 0, {{kNoCallPath, 9, one}, {kNoCallPath, 9, other}}));
  const auto parts = build();
  EXPECT_THAT(names(parts->model, 0, 0), ElementsAre("a?b"));
  EXPECT_THAT(names(parts->model, 0, 1), ElementsAre("a?b"));
  EXPECT_EQ(parts->model.call_paths.size(), 2u);
}

TEST_F(CallPathsTest, code_in_no_file_keeps_its_address_or_has_its_compilers_name) {
  add_process(0, 7, 0x1000);
  node_.define(0, DefinitionType::kCallPaths,
               paths_of(0, 0, {{kNoCallPath, kNoMapping, 0x55}, {0, kNoMapping, 0x205}}));
  node_.define(0, DefinitionType::kJitSymbol, JitSymbolDefinition{0, 0, 0x200, 0x210},
               {"made at run time"});
  const auto parts = build();
  EXPECT_THAT(names(parts->model, 0, 1), ElementsAre("0x55", "made at run time"));
  EXPECT_EQ(parts->model.functions[parts->model.call_paths[1].function].module, "[jit]");
}

TEST_F(CallPathsTest, a_path_whose_callers_were_lost_begins_where_it_is_known) {
  add_process(0, 7, 0x1000);
  node_.define(0, DefinitionType::kCallPaths, paths_of(0, 10, {{9, 7, 0x20}, {10, 7, 0x30}}));
  const auto parts = build();
  EXPECT_THAT(names(parts->model, 0, 11), ElementsAre("solver+0x20", "solver+0x30"));
}

TEST_F(CallPathsTest, nodes_that_are_announced_and_not_there_are_not_read) {
  add_process(0, 7, 0x1000);
  Paths paths = paths_of(0, 10, {{kNoCallPath, 7, 0x20}});
  paths.definition.count = 1u << 30;
  node_.define(0, DefinitionType::kCallPaths, paths);
  const auto parts = build();
  EXPECT_EQ(parts->model.groups[0].call_path_map.size(), 4u);
}

TEST_F(CallPathsTest, counts_go_up_to_the_callers) {
  add_process(0, 7, 0x1000);
  node_.define(0, DefinitionType::kCallPaths,
               paths_of(0, 0, {{kNoCallPath, 7, 0x10}, {0, 7, 0x20}, {0, 7, 0x30}}));
  const auto parts = build();
  profile::CallSamples samples(parts->model);
  samples.begin(parts->model.groups[0]);
  const auto add = [&](uint32_t path) {
    Event event{};
    event.kind = EventKind::kCallSample;
    event.region = path;
    event.peer = 77;
    event.bytes = 10;
    samples.add(event);
  };
  for (const uint32_t path : {1u, 1u, 2u, 0u, 4711u}) add(path);
  const auto counts = samples.counts();
  EXPECT_EQ(counts[0].self, 1u);
  EXPECT_EQ(counts[0].total, 4u);
  EXPECT_EQ(counts[1].total, 2u);
  EXPECT_EQ(counts[0].self_period, 10u);
  EXPECT_EQ(counts[0].total_period, 40u);
  EXPECT_EQ(counts[1].total_period, 20u);
  EXPECT_EQ(samples.unknown_count(), 1u);
  const auto rows = samples.rows();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1].count, 2u);
  EXPECT_EQ(rows[1].period, 20u);
}

}  // namespace
}  // namespace aon::writers
