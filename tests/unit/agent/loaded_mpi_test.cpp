#include "core/agent/loaded_mpi.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "core/base/unique_fd.h"

namespace aon::agent {
namespace {

constexpr char kWithout[] =
    "55d0c8e00000-55d0c8e02000 r-xp 00000000 fe:00 17 /opt/libmpi.so/bin/app\n"
    "7f2c10000000-7f2c10020000 rw-p 00000000 00:00 0 \n"
    "7f2c20000000-7f2c20020000 r-xp 00000000 fe:00 18 /usr/lib/libmpifit.so.2\n";

TEST(LoadedMpi, is_found_by_the_name_of_its_file) {
  EXPECT_EQ(mpi_library_in(""), "");
  EXPECT_EQ(mpi_library_in(kWithout), "");
  const std::string line = "7f2c30000000-7f2c30020000 r--p 00000000 fe:00 19 /usr/lib/";
  EXPECT_EQ(mpi_library_in(kWithout + line + "libmpi.so.40.30.4\n"), "libmpi.so.40.30.4");
  EXPECT_EQ(mpi_library_in(kWithout + line + "libmpich.so.12"), "libmpich.so.12");
  EXPECT_EQ(mpi_library_in(line + "libmpi_abi.so.0 (deleted)\n" + kWithout), "libmpi_abi.so.0");
}

TEST(LoadedMpi, has_other_names_where_vendors_build_it) {
  const std::string line = "7f2c30000000-7f2c30020000 r-xp 00000000 fe:00 19 /opt/cray/pe/lib64/";
  for (const char* file :
       {"libmpi.so.12.0.0", "libmpi_cray.so.12", "libmpi_gnu_91.so.12", "libmpi_gnu_123.so.12.0.0",
        "libmpi_gnu.so.12", "libmpi_nvidia.so.12", "libmpi_intel.so.12", "libmpi_amd.so.12.0.0",
        "libmpi_aocc.so.12", "libmpich_gnu_82.so.3.0.1", "libmpich_cray.so.3", "libmpi_mt.so.12",
        "libmpi_dbg_mt.so.4", "libmpi_ibm.so.3", "libmpich.so"}) {
    EXPECT_EQ(mpi_library_in(kWithout + line + file + "\n"), file);
  }
  // Of the same folders: GPU transport, Fortran and C++. They come with one of the above.
  for (const char* file : {"libmpi_gtl_cuda.so.0", "libmpifort_gnu_123.so.12", "libmpi_mpifh.so.40",
                           "libmpi_cxx.so.40", "libmpi_usempif08.so.40", "libmpichf90_gnu_82.so.3",
                           "libmpi_gnu_123", "libmpi_.so", "x.so"}) {
    EXPECT_EQ(mpi_library_in(kWithout + line + file + "\n"), "") << file;
  }
}

TEST(LoadedMpi, is_none_of_a_process_without_one_and_of_nobody) {
  EXPECT_EQ(mpi_library_of(::getpid()), "");
  EXPECT_EQ(mpi_library_of(0), "");
}

/// Of this one, which maps a file of such a name.
TEST(LoadedMpi, of_a_process_is_told_once_it_has_computed) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("libmpi.so." + std::to_string(::getpid()));
  const UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::ftruncate(file.get(), 4096), 0);
  void* page = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file.get(), 0);
  ASSERT_NE(page, MAP_FAILED);
  constexpr uint64_t kSecondNs = 1'000'000'000;
  MpiLibraries libraries;
  libraries.want(3, ::getpid(), kSecondNs - 1);
  libraries.look();
  EXPECT_EQ(libraries.of(3), "");
  libraries.want(3, ::getpid(), kSecondNs);
  for (int i = 0; i < 1000 && libraries.of(3).empty(); ++i) {
    libraries.look();
    ::usleep(10'000);
  }
  EXPECT_EQ(libraries.of(3), std::filesystem::path(path).filename());
  EXPECT_EQ(libraries.of(4), "");
  libraries.forget(3);
  EXPECT_EQ(libraries.of(3), "");
  ::munmap(page, 4096);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace aon::agent
