// plugins/mpi/standard_abi.cpp: which library is one of MPI 5's ABI, its numbers (MPI-5.0, appendix
// A), and what it is asked because the standard leaves it open.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "plugins/mpi/handles.h"

namespace aon::mpi {

Abi abi;

namespace {

constexpr Handle kByte = 0x247;
int g_version;

int get_version(int* major, int* minor) {
  *major = g_version;
  *minor = 0;
  return kSuccess;
}
struct MadeUpStatus {
  int32_t source, tag, error, internal[5];
};
const MadeUpStatus& made_up(const Status* status) {
  return *reinterpret_cast<const MadeUpStatus*>(status);
}
int test_cancelled(const Status* status, int* flag) {
  *flag = made_up(status).internal[3];
  return kSuccess;
}
int get_count(const Status* status, Handle datatype, int64_t* count) {
  *count = datatype == kByte ? made_up(status).internal[1] : -1;
  return kSuccess;
}
int error_class(int32_t code, int* out) {
  *out = code % 1000;
  return kSuccess;
}

std::map<std::string, void*> g_functions;
void* find(const char* name) {
  const auto found = g_functions.find(name);
  return found == g_functions.end() ? nullptr : found->second;
}

class StandardAbi : public testing::Test {
 protected:
  StandardAbi() {
    g_version = 1;
    g_functions = {{"PMPI_Abi_get_version", reinterpret_cast<void*>(get_version)},
                   {"PMPI_Test_cancelled", reinterpret_cast<void*>(test_cancelled)},
                   {"PMPI_Get_count_c", reinterpret_cast<void*>(get_count)},
                   {"PMPI_Error_class", reinterpret_cast<void*>(error_class)}};
  }
  static bool detect(const char* soname = "libmpi_abi.so.0") {
    return kStandardAbi.detect(&abi, {soname, find, find});
  }
};

TEST_F(StandardAbi, is_told_by_name_and_version) {
  EXPECT_TRUE(detect("libmpi_abi.so.0"));
  EXPECT_TRUE(detect("libmpi_abi.so.1"));
  for (const char* soname : {"libmpi.so.40", "libmpi.so.12", "libmpich.so.12", "libmpi_ab.so", ""})
    EXPECT_FALSE(detect(soname)) << soname;
  for (const int version : {-1, 0, 2}) {
    g_version = version;
    EXPECT_FALSE(detect()) << version;
  }
}

TEST_F(StandardAbi, needs_what_it_has_to_ask) {
  const auto all = g_functions;
  for (const auto& [name, function] : all) {
    g_functions = all;
    g_functions.erase(name);
    EXPECT_FALSE(detect()) << name;
  }
}

TEST_F(StandardAbi, has_the_numbers_of_the_standard) {
  ASSERT_TRUE(detect());
  EXPECT_EQ(abi.handle_bytes, 8u);
  EXPECT_EQ(abi.status_bytes, 32u);
  EXPECT_LE(abi.status_bytes, kMaxStatusBytes);
  EXPECT_EQ(abi.any_source, -1);
  EXPECT_EQ(abi.any_tag, -2);
  EXPECT_EQ(abi.proc_null, -3);
  EXPECT_EQ(abi.root, -4);
  EXPECT_EQ(abi.undefined, -32766);
  EXPECT_EQ(abi.error_other, 16);
  EXPECT_EQ(abi.error_pending, 18);
  EXPECT_EQ(abi.error_in_status, 19);
  EXPECT_EQ(abi.topology_cartesian, 211);
  EXPECT_EQ(abi.topology_graph, 212);
  EXPECT_EQ(abi.topology_dist_graph, 213);
  EXPECT_EQ(abi.lock_exclusive, 301);
  EXPECT_EQ(abi.in_place, reinterpret_cast<const void*>(1));
  EXPECT_EQ(abi.status_ignore, nullptr);
  EXPECT_EQ(abi.statuses_ignore, nullptr);
}

TEST_F(StandardAbi, has_the_handles_of_the_standard) {
  ASSERT_TRUE(detect());
  EXPECT_EQ(abi.operation_none, 0x3du);
  EXPECT_EQ(abi.comm_null, 0x100u);
  EXPECT_EQ(abi.comm_world, 0x101u);
  EXPECT_EQ(abi.comm_self, 0x102u);
  EXPECT_EQ(abi.group_null, 0x108u);
  EXPECT_EQ(abi.window_null, 0x110u);
  EXPECT_EQ(abi.message_null, 0x128u);
  EXPECT_EQ(abi.message_no_proc, 0x129u);
  EXPECT_EQ(abi.request_null, 0x180u);
  EXPECT_EQ(abi.datatype_null, 0x200u);
  EXPECT_EQ(abi.fortran.byte, kByte);
  EXPECT_FALSE(abi.fortran.is_known);
}

TEST_F(StandardAbi, has_the_modes_of_files_of_the_standard) {
  ASSERT_TRUE(detect());
  EXPECT_EQ(abi.file.append, 1);
  EXPECT_EQ(abi.file.create, 2);
  EXPECT_EQ(abi.file.delete_on_close, 4);
  EXPECT_EQ(abi.file.exclusive, 8);
  EXPECT_EQ(abi.file.read_only, 16);
  EXPECT_EQ(abi.file.read_write, 32);
  EXPECT_EQ(abi.file.sequential, 64);
  EXPECT_EQ(abi.file.unique_open, 128);
  EXPECT_EQ(abi.file.write_only, 256);
  EXPECT_EQ(abi.file.seek_current, 401);
  EXPECT_EQ(abi.file.seek_end, 402);
}

TEST_F(StandardAbi, reckons_with_threads_where_the_level_is_none_of_its) {
  ASSERT_TRUE(detect());
  EXPECT_EQ(thread_level(0), 0);
  EXPECT_EQ(thread_level(1024), 1);
  EXPECT_EQ(thread_level(2048), 2);
  EXPECT_EQ(thread_level(4096), 3);
  for (const int other : {3, 7, -1, 8192}) EXPECT_EQ(thread_level(other), 3) << other;
}

TEST_F(StandardAbi, asks_the_library_what_the_standard_leaves_open) {
  ASSERT_TRUE(detect());
  const MadeUpStatus status = {7, 8, 9, {0, 1234, 0, 1, 0}};
  const auto* ours = reinterpret_cast<const Status*>(&status);
  EXPECT_EQ(status_source(ours), 7);
  EXPECT_EQ(status_tag(ours), 8);
  EXPECT_EQ(status_error(ours), 9);
  EXPECT_EQ(status_bytes(ours), 1234u);
  EXPECT_TRUE(status_cancelled(ours));
  EXPECT_TRUE(is_error_class(5019, abi.error_in_status)) << "a code says more than its class";
  EXPECT_FALSE(is_error_class(5018, abi.error_in_status));
  EXPECT_FALSE(is_error_class(kSuccess, kSuccess)) << "that is no error";
}

std::set<Handle> g_visited;

TEST_F(StandardAbi, has_each_type_once_and_no_request_that_many_share) {
  ASSERT_TRUE(detect());
  kStandardAbi.visit_datatypes(find, [](Handle type) {
    EXPECT_TRUE(g_visited.insert(type).second) << type;
    EXPECT_TRUE(type > abi.datatype_null && type < 0x260) << type;
  });
  for (const Handle type : {0x209, 0x214, 0x247, 0x243, 0x210, 0x220, 0x238, 0x258})
    EXPECT_EQ(g_visited.count(type), 1u) << type;
  for (const Handle request : {Handle{0x180}, Handle{0x7f0012345678}, Handle{0x6c000000}})
    EXPECT_FALSE(is_shared_request(request));
}

}  // namespace
}  // namespace aon::mpi
