// core/base/file_search.h: what stands across two pieces of a file is found as well.
#include "core/base/file_search.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <string>

namespace aon {
namespace {

constexpr uint64_t kAll = UINT64_MAX;

UniqueFd file_of(const std::string& bytes) {
  UniqueFd file(memfd_create("aon-search", MFD_CLOEXEC));
  EXPECT_TRUE(write_all(file.get(), bytes.data(), bytes.size()).has_value());
  return file;
}

TEST(FileSearch, finds_what_stands_anywhere) {
  const std::string wanted("\0MPI_", 5);
  for (const size_t before : {0u, 1u, 262139u, 262140u, 262143u, 262144u, 524280u, 700000u}) {
    const UniqueFd file = file_of(std::string(before, 'x') + wanted + "Init");
    EXPECT_TRUE(file_has(file.get(), 0, kAll, {"nothing of it", wanted})) << before;
    EXPECT_TRUE(file_has(file.get(), before, wanted.size(), {wanted})) << before;
    EXPECT_FALSE(file_has(file.get(), before, wanted.size() - 1, {wanted})) << before;
    EXPECT_FALSE(file_has(file.get(), before + 1, kAll, {wanted})) << before;
    EXPECT_FALSE(file_has(file.get(), 0, kAll, {"MPI_Send"})) << before;
  }
}

TEST(FileSearch, of_a_file_without_bytes_finds_nothing) {
  const UniqueFd file = file_of("");
  EXPECT_FALSE(file_has(file.get(), 0, kAll, {"a"}));
  EXPECT_FALSE(file_has(file.get(), uint64_t{1} << 63, 5, {"a"}));
  EXPECT_FALSE(file_has(-1, 0, kAll, {"a"}));
}

}  // namespace
}  // namespace aon
