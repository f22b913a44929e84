/// The real MPI library: found at run time, by name, when its first function is called. We never
/// link it, so that every program can be preloaded.
///
/// A wrapper forwards to the next definition of its own name behind us, so a PMPI tool that the
/// user preloads sees the calls as well. Where libmpi was dlopen()ed RTLD_LOCAL (mpi4py) there is
/// no next definition: then the loaded libraries are searched for it. What we ask for ourselves
/// goes to the PMPI names.
/// Thread: any; a slot is written with the same value whoever comes first.
/// Cost: one load per call; the first call of a function looks its name up.
#pragma once

#include <atomic>

#include "mpi/generated/sites.h"
#include "mpi/handles.h"

namespace aon::mpi {

/// Address of each real function by its number (generated/sites.h); null until its first call.
[[gnu::visibility("hidden")]] extern std::atomic<void*> functions[kFunctionCount];

/// Looks a function up. When the library has none, the address of a function that
/// returns MPI_ERR_OTHER.
void* resolve_function(uint32_t number) noexcept;

/// The same without looking it up: null before the first call.
[[gnu::always_inline]] inline void* known_function(uint32_t number) {
  return functions[number].load(std::memory_order_relaxed);
}

[[gnu::always_inline]] inline void* real_function(uint32_t number) {
  void* function = functions[number].load(std::memory_order_relaxed);
  return __builtin_expect(function != nullptr, 1) ? function : resolve_function(number);
}

/// Address of a symbol of the MPI library as the program sees it, or null.
void* find_symbol(const char* name) noexcept;

/// The next Fortran function `name` behind us, or that of a library loaded RTLD_LOCAL; or null.
void* find_behind(const char* name) noexcept;

/// Finds out which library is loaded, once one is. Thread: any; takes a lock.
void detect_library() noexcept;

/// How many of MPI's C functions the program finds somewhere in front of us (in itself, in a
/// library that was preloaded earlier), and the name of one. We see such calls if they come on.
/// Cost: 0.1 to 0.3 ms, once.
uint32_t functions_in_front(const char** name) noexcept;

/// What we ask of the library for ourselves. Null where it lacks the function.
struct Queries {
  int (*initialized)(int* flag);
  int (*finalized)(int* flag);
  int (*query_thread)(int* provided);
  int (*comm_rank)(Handle comm, int* rank);
  int (*comm_size)(Handle comm, int* size);
  int (*comm_test_inter)(Handle comm, int* flag);
  int (*comm_remote_size)(Handle comm, int* size);
  int (*comm_group)(Handle comm, void* group);
  int (*comm_remote_group)(Handle comm, void* group);
  int (*group_size)(Handle group, int* size);
  int (*group_rank)(Handle group, int* rank);
  int (*group_translate_ranks)(Handle from, int count, const int* ranks, Handle to, int* out);
  int (*group_free)(void* group);
  int (*group_from_session_pset)(Handle session, const char* name, void* group);
  Handle (*session_f2c)(int session);
  int (*session_get_info)(Handle session, void* info);
  int (*info_get_string)(Handle info, const char* key, int* size, char* value, int* flag);
  int (*info_free)(void* info);
  int (*type_size)(Handle datatype, int* byte_count);
  int (*type_size_x)(Handle datatype, int64_t* byte_count);
  int (*topo_test)(Handle comm, int* status);
  int (*cartdim_get)(Handle comm, int* dimension_count);
  int (*cart_get)(Handle comm, int most, int* extents, int* are_periodic, int* coordinates);
  int (*cart_shift)(Handle comm, int direction, int distance, int* source, int* destination);
  int (*graph_neighbors_count)(Handle comm, int rank, int* neighbor_count);
  int (*graph_neighbors)(Handle comm, int rank, int most, int* neighbors);
  int (*dist_graph_neighbors_count)(Handle comm, int* in, int* out, int* is_weighted);
  int (*dist_graph_neighbors)(Handle comm, int most_in, int* sources, int* in_weights, int most_out,
                              int* destinations, int* out_weights);
  int (*isend)(const void* buffer, int count, Handle datatype, int destination, int tag,
               Handle comm, void* request);
  int (*irecv)(void* buffer, int count, Handle datatype, int source, int tag, Handle comm,
               void* request);
  int (*isendrecv)(const void* out, int out_count, Handle out_type, int to, int out_tag, void* in,
                   int in_count, Handle in_type, int from, int in_tag, Handle comm, void* request);
  int (*wait)(void* request, Status* status);
  int (*type_get_extent)(Handle datatype, int64_t* lower_bound, int64_t* byte_count);
  int (*type_get_true_extent)(Handle datatype, int64_t* lower_bound, int64_t* byte_count);
  int (*file_get_position)(Handle file, int64_t* position);
  int (*file_get_byte_offset)(Handle file, int64_t position, int64_t* offset);
  Handle (*file_f2c)(int file);  ///< in every library: no MPI_File is an integer
  Handle (*comm_f2c)(int comm);  ///< f2c, c2f: only where C's handles are no integers
  int (*comm_c2f)(Handle comm);
  Handle (*type_f2c)(int datatype);
  int (*type_c2f)(Handle datatype);
  Handle (*request_f2c)(int request);
  int (*request_c2f)(Handle request);
  Handle (*message_f2c)(int message);
  Handle (*window_f2c)(int window);
  Handle (*group_f2c)(int group);
  Handle (*operation_f2c)(int operation);
};
extern Queries queries;

/// True when the library was recognised: `abi` and `queries` are filled in. Calls of another one
/// are only forwarded: nobody knows what its handles, statuses and constants mean.
bool library_is_known() noexcept;

/// Whether both addresses lie in one library, or in the program.   Cost: ld.so's lock, some 100 ns.
bool are_of_one_file(const void* a, const void* b) noexcept;

/// The backend of a known library.
const Backend* library_backend() noexcept;

/// What programs are linked to the library by, as libmpi.so.40; empty before it was looked for, and
/// when it cannot be found.
const char* library_soname() noexcept;

}  // namespace aon::mpi
