#include "plugins/mpi/loaded.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

extern "C" {
const char* loaded_by_gnu_hash();
const char* loaded_by_hash();
}

namespace aon::mpi {
namespace {

using Function = const char* (*)();

void* address_of(Function function) { return reinterpret_cast<void*>(function); }

void expect_finds_its_own_function(Function function, const char* name, const char* soname) {
  const LoadedFile file = file_of(address_of(function));
  ASSERT_NE(file.dynamic, nullptr);
  EXPECT_EQ(std::string(soname_of(file)), soname);
  EXPECT_EQ(symbol_in(file, name), address_of(function));
  EXPECT_EQ(symbol_in(file, "no_such_name"), nullptr);
  EXPECT_EQ(symbol_in(file, "getenv"), nullptr) << "it only asks for it";
  EXPECT_EQ(symbol_since(file, name), address_of(function));
  EXPECT_EQ(symbol_since({}, name), address_of(function));
}

}  // namespace

TEST(Loaded, finds_names_by_either_table) {
  expect_finds_its_own_function(loaded_by_gnu_hash, "loaded_by_gnu_hash", "libmpi_gnu_hash.so");
  expect_finds_its_own_function(loaded_by_hash, "loaded_by_hash", "libmpi_hash.so");
}

TEST(Loaded, finds_what_dlsym_finds) {
  for (const char* name : {"getenv", "gethostname", "loaded_by_hash", "_ZSt9terminatev"}) {
    void* const wanted = dlsym(RTLD_DEFAULT, name);
    EXPECT_NE(wanted, nullptr) << name;
    EXPECT_EQ(symbol_since({}, name), wanted) << name;
    EXPECT_EQ(symbol_of_program(name), wanted) << name;
  }
  EXPECT_EQ(symbol_since({}, "no_such_name"), nullptr);
}

TEST(Loaded, looks_for_references_where_there_is_memory) {
  EXPECT_TRUE(may_load_libraries()) << "libmpi_moved_dlopen.so does";
}

TEST(Loaded, looks_only_in_the_file_and_behind_it) {
  const LoadedFile libc = file_of(dlsym(RTLD_DEFAULT, "gethostname"));
  ASSERT_NE(libc.dynamic, nullptr);
  EXPECT_EQ(symbol_since(libc, "loaded_by_hash"), nullptr) << "in front of libc";
  EXPECT_EQ(file_of(nullptr).dynamic, nullptr);
}

}  // namespace aon::mpi
