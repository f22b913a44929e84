// What of a library that the user preloads says whether it wraps MPI.
#include <elf.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "launcher/environment.h"
#include "tests/unit/folder_fixture.h"

namespace aon::launcher {
namespace {

class Preload : public test::FolderFixture {
 protected:
  /// LD_PRELOAD where the user has `library` in it.
  static std::string with(const std::string& library) {
    Installation files;
    files.runtime_library = "/i/libaon.so";
    files.mpi_library = "/i/libaon-mpi.so";
    const ProgramEnvironment result =
        program_environment({}, files, "", "/out", [&](const char* name) -> const char* {
          return std::string_view(name) == "LD_PRELOAD" ? library.c_str() : nullptr;
        });
    for (const Variable& variable : result.variables)
      if (variable.name == "LD_PRELOAD") return variable.value;
    return "";
  }
  /// This program, with more bytes behind it.
  std::string copy(const std::string& more) const {
    const std::string name = path("copy.so");
    const auto options = std::filesystem::copy_options::overwrite_existing;
    std::filesystem::copy_file("/proc/self/exe", name, options);
    std::ofstream(name, std::ios::binary | std::ios::app) << more;
    return name;
  }
};

const std::string kOurs = "/i/libaon.so:/i/libaon-mpi.so";

TEST_F(Preload, of_a_library_that_has_mpi_beside_its_names_comes_first) {
  const std::string library = copy(std::string("\0PMPI_Init\0", 11));
  EXPECT_EQ(with(library), library + ":" + kOurs);
}

TEST_F(Preload, of_a_library_that_is_cut_is_read_as_it_is) {
  for (const size_t byte_count : {size_t{10}, sizeof(Elf64_Ehdr), size_t{4096}}) {
    const std::string library = copy("");
    std::filesystem::resize_file(library, byte_count);
    EXPECT_EQ(with(library), library + ":" + kOurs) << byte_count;
    std::ofstream(library, std::ios::binary | std::ios::app) << std::string("\0MPI_Init\0", 10);
    EXPECT_EQ(with(library), kOurs + ":" + library) << byte_count;
  }
}

}  // namespace
}  // namespace aon::launcher
