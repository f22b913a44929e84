// plugins/mpi/state.h with an MPI library that is made here: whose word on threads counts.
#include "plugins/mpi/state.h"

#include <gtest/gtest.h>

#include "plugins/mpi/communicators.h"
#include "plugins/mpi/fortran.h"
#include "plugins/mpi/library.h"
#include "plugins/mpi/lock.h"
#include "plugins/mpi/provider.h"
#include "plugins/mpi/requests.h"

namespace aon {

extern "C" bool aon_define(uint32_t, const void*, uint32_t, const char*, uint32_t) noexcept {
  return true;
}

namespace mpi {

Abi abi;
Queries queries;
ProviderNotes provider_notes;
std::atomic<void*> functions[kFunctionCount];
std::atomic<void*> fortran_functions[kFamilies][kFunctionCount];
void tell_provider(bool) {}
void tell_unknown_library() {}
bool library_is_known() noexcept { return true; }
bool learn_fortran() noexcept { return true; }
void learn_fortran_datatype(Handle) noexcept {}
uint32_t functions_in_front(const char**) noexcept { return 0; }
void* find_symbol(const char*) noexcept { return nullptr; }
const Backend* library_backend() noexcept {
  static Backend backend{};
  backend.visit_datatypes = [](auto, auto) {};
  return &backend;
}

namespace {

constexpr Handle kSession = 0x900;
constexpr Handle kRequest = 0x7007;

/// A library whose MPI_Init allows one thread.
void make_library() {
  abi.handle_mask = ~Handle{0};
  abi.handle_bytes = 8;
  abi.comm_world = 0x100;
  abi.comm_self = 0x108;
  abi.request_shared_size = 1;
  for (int level = 0; level < kThreadLevels; ++level) abi.thread_levels[level] = level;
  queries.initialized = [](int* flag) {
    *flag = 1;
    return kSuccess;
  };
  queries.finalized = [](int* flag) {
    *flag = 0;
    return kSuccess;
  };
  queries.query_thread = [](int* provided) {
    *provided = 0;
    return kSuccess;
  };
  queries.comm_rank = [](Handle, int* rank) {
    *rank = 0;
    return kSuccess;
  };
  queries.comm_size = [](Handle, int* size) {
    *size = 1;
    return kSuccess;
  };
}

TEST(State, a_session_may_bring_threads_where_mpi_init_allowed_none) {
  Writer w{};
  Request request{};
  request.handle = kRequest;
  request.number = next_request_number();
  make_library();
  mpi_is_initialized();
  EXPECT_FALSE(threads_are_concurrent());
  put_request(&w, request);
  mpi_session_has_begun(kSession);
  EXPECT_TRUE(threads_are_concurrent());
  EXPECT_GT(last_request_number(), request.number);
  Request out;
  ASSERT_TRUE(take_request(&w, kRequest, last_request_number(), &out));
  EXPECT_EQ(out.number, request.number);
  EXPECT_FALSE(mpi_session_is_ending(kSession)) << "MPI_Finalize is still to come";
  EXPECT_TRUE(threads_are_concurrent());
}

}  // namespace
}  // namespace mpi
}  // namespace aon
