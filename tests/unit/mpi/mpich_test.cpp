// plugins/mpi/mpich.cpp against MPICH itself: what it says of constants, statuses and types is what
// the installed <mpi.h> and library say.
#include "plugins/mpi/handles.h"

#include <gtest/gtest.h>
#include <mpi.h>

#include <set>

/// MPI is never finalized here, and its network libraries keep what they have.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" const char* __lsan_default_suppressions();
const char* __lsan_default_suppressions() {
  return "leak:libmpi\nleak:libuc\nleak:libfabric\nleak:libhwloc\nleak:libpmi\n";
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace aon::mpi {

Abi abi;

namespace {

void* find_nothing(const char*) { return nullptr; }

bool detect(const char* soname, Abi* out = &abi) {
  return kMpich.detect(out, {soname, find_nothing, find_nothing});
}

/// Tests that need a running MPI. No test ends it: all may run in one process.
class RunningMpich : public testing::Test {
 protected:
  void SetUp() override {
    int is_initialized = 0;
    ASSERT_TRUE(detect("libmpich.so.12"));
    MPI_Initialized(&is_initialized);
    if (is_initialized == 0) {
      ASSERT_EQ(MPI_Init(nullptr, nullptr), MPI_SUCCESS);
    }
  }
};

const Status* ours(const MPI_Status& status) { return reinterpret_cast<const Status*>(&status); }

TEST(Mpich, is_told_by_the_name_that_its_abi_fixes) {
  for (const char* soname : {"libmpi.so.12", "libmpich.so.12", "libmpi_gnu_123.so.12"}) {
    EXPECT_TRUE(detect(soname)) << soname;
  }
  for (const char* soname :
       {"libmpi.so.40", "libmpi_abi.so.0", "libmpi_abi.so.12", "libmpich.so.10", "libc.so.6", ""}) {
    EXPECT_FALSE(detect(soname)) << soname;
  }
}

TEST(Mpich, has_the_constants_of_its_header) {
  ASSERT_TRUE(detect("libmpich.so.12"));
  EXPECT_EQ(abi.handle_bytes, sizeof(MPI_Request));
  EXPECT_EQ(abi.handle_bytes, sizeof(MPI_Comm));
  EXPECT_EQ(abi.handle_bytes, sizeof(MPI_Datatype));
  EXPECT_EQ(abi.status_bytes, sizeof(MPI_Status));
  EXPECT_EQ(abi.any_source, MPI_ANY_SOURCE);
  EXPECT_EQ(abi.any_tag, MPI_ANY_TAG);
  EXPECT_EQ(abi.proc_null, MPI_PROC_NULL);
  EXPECT_EQ(abi.root, MPI_ROOT);
  EXPECT_EQ(abi.undefined, MPI_UNDEFINED);
  EXPECT_EQ(abi.error_other, MPI_ERR_OTHER);
  EXPECT_EQ(abi.error_in_status, MPI_ERR_IN_STATUS);
  EXPECT_EQ(abi.error_pending, MPI_ERR_PENDING);
  EXPECT_GE(abi.error_class_mask, MPI_ERR_LASTCODE & 0x7f);
  EXPECT_EQ(abi.topology_cartesian, MPI_CART);
  EXPECT_EQ(abi.topology_graph, MPI_GRAPH);
  EXPECT_EQ(abi.topology_dist_graph, MPI_DIST_GRAPH);
  EXPECT_EQ(abi.in_place, MPI_IN_PLACE);
  EXPECT_EQ(abi.status_ignore, reinterpret_cast<Status*>(MPI_STATUS_IGNORE));
  EXPECT_EQ(abi.statuses_ignore, reinterpret_cast<Status*>(MPI_STATUSES_IGNORE));
  EXPECT_EQ(abi.lock_exclusive, MPI_LOCK_EXCLUSIVE);
  EXPECT_EQ(kSuccess, MPI_SUCCESS);
  EXPECT_EQ(thread_level(MPI_THREAD_SINGLE), 0);
  EXPECT_EQ(thread_level(MPI_THREAD_MULTIPLE), 3);
  EXPECT_EQ(thread_level(1000), 3);
  EXPECT_EQ(sizeof(Handle), sizeof(MPI_File));
  EXPECT_EQ(abi.file.read_only, MPI_MODE_RDONLY);
  EXPECT_EQ(abi.file.write_only, MPI_MODE_WRONLY);
  EXPECT_EQ(abi.file.read_write, MPI_MODE_RDWR);
  EXPECT_EQ(abi.file.create, MPI_MODE_CREATE);
  EXPECT_EQ(abi.file.exclusive, MPI_MODE_EXCL);
  EXPECT_EQ(abi.file.delete_on_close, MPI_MODE_DELETE_ON_CLOSE);
  EXPECT_EQ(abi.file.unique_open, MPI_MODE_UNIQUE_OPEN);
  EXPECT_EQ(abi.file.sequential, MPI_MODE_SEQUENTIAL);
  EXPECT_EQ(abi.file.append, MPI_MODE_APPEND);
  EXPECT_EQ(abi.file.seek_current, MPI_SEEK_CUR);
  EXPECT_EQ(abi.file.seek_end, MPI_SEEK_END);
}

TEST(Mpich, has_the_handles_of_its_header) {
  ASSERT_TRUE(detect("libmpich.so.12"));
  EXPECT_EQ(abi.comm_world, static_cast<uint32_t>(MPI_COMM_WORLD));
  EXPECT_EQ(abi.comm_self, static_cast<uint32_t>(MPI_COMM_SELF));
  EXPECT_EQ(abi.comm_null, static_cast<uint32_t>(MPI_COMM_NULL));
  EXPECT_EQ(abi.request_null, static_cast<uint32_t>(MPI_REQUEST_NULL));
  EXPECT_EQ(abi.datatype_null, static_cast<uint32_t>(MPI_DATATYPE_NULL));
  EXPECT_EQ(abi.group_null, static_cast<uint32_t>(MPI_GROUP_NULL));
  EXPECT_EQ(abi.window_null, static_cast<uint32_t>(MPI_WIN_NULL));
  EXPECT_EQ(abi.operation_none, static_cast<uint32_t>(MPI_NO_OP));
  EXPECT_EQ(abi.message_null, static_cast<uint32_t>(MPI_MESSAGE_NULL));
  EXPECT_EQ(abi.message_no_proc, static_cast<uint32_t>(MPI_MESSAGE_NO_PROC));
  EXPECT_EQ(canonical(0xdeadbeef00000000 | abi.comm_world), abi.comm_world);
  EXPECT_FALSE(is_shared_request(abi.request_null));
}

TEST_F(RunningMpich, statuses_are_read_as_the_library_writes_them) {
  MPI_Status status = {};
  status.MPI_SOURCE = 7;
  status.MPI_TAG = 8;
  status.MPI_ERROR = 9;
  EXPECT_EQ(status_source(ours(status)), 7);
  EXPECT_EQ(status_tag(ours(status)), 8);
  EXPECT_EQ(status_error(ours(status)), 9);
  for (const int is_cancelled : {0, 1}) {
    for (const MPI_Count count : {MPI_Count{0}, MPI_Count{5}, MPI_Count{0xffffffff},
                                  MPI_Count{1} << 32, (MPI_Count{3} << 40) + 1}) {
      MPI_Status_set_elements_x(&status, MPI_BYTE, count);
      MPI_Status_set_cancelled(&status, is_cancelled);
      EXPECT_EQ(status_bytes(ours(status)), static_cast<uint64_t>(count));
      EXPECT_EQ(status_cancelled(ours(status)), is_cancelled != 0);
    }
  }
  int code;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  code = MPI_Send(nullptr, 0, MPI_BYTE, 99, 0, MPI_COMM_WORLD);
  EXPECT_NE(code, MPI_ERR_RANK) << "a code says more than its class";
  EXPECT_TRUE(is_error_class(code, MPI_ERR_RANK));
}

TEST_F(RunningMpich, shared_requests_are_those_of_calls_that_were_complete_at_once) {
  MPI_Request requests[3];
  char in;
  MPI_Irecv(&in, 1, MPI_BYTE, 0, 1, MPI_COMM_SELF, &requests[0]);
  MPI_Isend(&in, 0, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_SELF, &requests[1]);
  MPI_Ibarrier(MPI_COMM_SELF, &requests[2]);
  EXPECT_FALSE(is_shared_request(load_handle(requests, 0)));
  EXPECT_TRUE(is_shared_request(load_handle(requests, 1)));
  EXPECT_TRUE(is_shared_request(load_handle(requests, 2)));
  EXPECT_NE(requests[1], requests[2]) << "one handle per kind";
  MPI_Cancel(&requests[0]);
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
}

std::set<Handle> g_visited;

TEST_F(RunningMpich, knows_the_basic_types) {
  kMpich.visit_datatypes(find_nothing, [](Handle type) {
    EXPECT_TRUE(g_visited.insert(type).second) << "twice: " << type;
  });
  for (const Handle type : g_visited) {
    int byte_count = -1;
    EXPECT_EQ(MPI_Type_size(static_cast<MPI_Datatype>(type), &byte_count), MPI_SUCCESS);
    EXPECT_GT(byte_count, 0);
  }
  for (const MPI_Datatype type : {MPI_DOUBLE,
                                  MPI_INT,
                                  MPI_CHAR,
                                  MPI_BYTE,
                                  MPI_FLOAT,
                                  MPI_LONG,
                                  MPI_UINT64_T,
                                  MPI_INT8_T,
                                  MPI_AINT,
                                  MPI_OFFSET,
                                  MPI_COUNT,
                                  MPI_2INT,
                                  MPI_DOUBLE_INT,
                                  MPI_C_BOOL,
                                  MPI_PACKED,
                                  MPI_LONG_DOUBLE,
                                  MPI_UNSIGNED_LONG_LONG,
                                  MPI_C_DOUBLE_COMPLEX,
                                  MPI_WCHAR,
                                  MPI_SHORT}) {
    EXPECT_EQ(g_visited.count(static_cast<uint32_t>(type)), 1u) << std::hex << type;
  }
}

}  // namespace
}  // namespace aon::mpi
