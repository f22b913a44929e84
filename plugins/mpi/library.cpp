#include "mpi/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

namespace aon::mpi {

std::atomic<void*> functions[kSiteCount];
Abi abi;
Queries queries;

namespace {

pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
bool g_is_detected;     // guarded by g_mutex
bool g_is_known;        // guarded by g_mutex until detection is over, then constant
void* g_local_library;  // guarded by g_mutex: libmpi that was loaded RTLD_LOCAL

// Files that have MPI's C functions, and those of its Fortran.
constexpr const char* kLibraries[] = {"libmpi.so", "libmpich.so"};
constexpr const char* kFortranLibraries[] = {"libmpi_mpifh.so", "libmpi_usempif08.so",
                                             "libmpichfort.so"};

int missing_function() { return abi.error_other != 0 ? abi.error_other : 16; }

/// A library that is looked for among the loaded ones, and its path when it was found.
struct Wanted {
  const char* file;  ///< how its name begins
  char path[PATH_MAX];
};

int note_library(dl_phdr_info* info, size_t, void* out) {
  const char* slash = strrchr(info->dlpi_name, '/');
  const char* file = slash != nullptr ? slash + 1 : info->dlpi_name;
  Wanted& wanted = *static_cast<Wanted*>(out);
  if (strncmp(file, wanted.file, strlen(wanted.file)) != 0) return 0;
  snprintf(wanted.path, sizeof wanted.path, "%s", info->dlpi_name);
  return 1;
}

/// The library `file` if it is loaded, wherever it was loaded from; else null. Its name is copied
/// first: dlopen() under dl_iterate_phdr's lock could wait for a thread in dlopen().
void* open_loaded(const char* file) {
  Wanted wanted;
  wanted.file = file;
  wanted.path[0] = '\0';
  dl_iterate_phdr(note_library, &wanted);
  return wanted.path[0] != '\0' ? dlopen(wanted.path, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
}

void* open_local_library() {
  for (const char* file : kLibraries) {
    if (g_local_library == nullptr) g_local_library = open_loaded(file);
  }
  return g_local_library;
}

void* find_locally(const char* name) {
  void* library = open_local_library();
  return library != nullptr ? dlsym(library, name) : nullptr;
}

/// The next `MPI_name` behind us, else `PMPI_name`, else the one of a library loaded RTLD_LOCAL.
void* find_next(const char* name) {
  char profiling_name[128];
  snprintf(profiling_name, sizeof profiling_name, "P%s", name);
  if (void* next = dlsym(RTLD_NEXT, name)) return next;
  if (void* next = dlsym(RTLD_NEXT, profiling_name)) return next;
  if (void* next = find_locally(name)) return next;
  return find_locally(profiling_name);
}

template <class Function>
void query(Function** out, const char* name) {
  *out = reinterpret_cast<Function*>(find_symbol(name));
}

void find_queries() {
  query(&queries.initialized, "PMPI_Initialized");
  query(&queries.finalized, "PMPI_Finalized");
  query(&queries.query_thread, "PMPI_Query_thread");
  query(&queries.comm_rank, "PMPI_Comm_rank");
  query(&queries.comm_size, "PMPI_Comm_size");
  query(&queries.comm_test_inter, "PMPI_Comm_test_inter");
  query(&queries.comm_remote_size, "PMPI_Comm_remote_size");
  query(&queries.comm_group, "PMPI_Comm_group");
  query(&queries.comm_remote_group, "PMPI_Comm_remote_group");
  query(&queries.group_size, "PMPI_Group_size");
  query(&queries.group_rank, "PMPI_Group_rank");
  query(&queries.group_translate_ranks, "PMPI_Group_translate_ranks");
  query(&queries.group_free, "PMPI_Group_free");
  query(&queries.type_size, "PMPI_Type_size");
  query(&queries.type_size_x, "PMPI_Type_size_x");
  query(&queries.topo_test, "PMPI_Topo_test");
  query(&queries.cartdim_get, "PMPI_Cartdim_get");
  query(&queries.graph_neighbors_count, "PMPI_Graph_neighbors_count");
  query(&queries.dist_graph_neighbors_count, "PMPI_Dist_graph_neighbors_count");
  query(&queries.comm_f2c, "PMPI_Comm_f2c");
  query(&queries.comm_c2f, "PMPI_Comm_c2f");
  query(&queries.type_f2c, "PMPI_Type_f2c");
  query(&queries.type_c2f, "PMPI_Type_c2f");
  query(&queries.request_f2c, "PMPI_Request_f2c");
  query(&queries.message_f2c, "PMPI_Message_f2c");
}

/// The list of backends: the first that knows the library wins.
void detect_locked() {
  if (g_is_detected) return;
  g_is_detected = true;
  Abi found;
  if (!detect_open_mpi(&found, find_symbol)) return;
  abi = found;
  find_queries();
  g_is_known = queries.comm_size != nullptr && queries.comm_rank != nullptr &&
               queries.type_size != nullptr && queries.comm_group != nullptr &&
               queries.group_translate_ranks != nullptr && queries.group_free != nullptr;
}

}  // namespace

void* find_symbol(const char* name) noexcept {
  if (void* symbol = dlsym(RTLD_DEFAULT, name)) return symbol;
  return find_locally(name);
}

void* resolve_function(uint32_t site) noexcept {
  const int saved_errno = errno;
  pthread_mutex_lock(&g_mutex);
  void* found = find_next(kSiteNames[site]);
  if (found != nullptr) detect_locked();
  pthread_mutex_unlock(&g_mutex);
  errno = saved_errno;
  // Not kept when missing: a library may still be loaded.
  if (found == nullptr) return reinterpret_cast<void*>(&missing_function);
  functions[site].store(found, std::memory_order_relaxed);
  return found;
}

void* find_behind(const char* name) noexcept {
  if (void* next = dlsym(RTLD_NEXT, name)) return next;
  void* found = nullptr;
  for (const char* file : kFortranLibraries) {
    void* library = found == nullptr ? open_loaded(file) : nullptr;
    if (library != nullptr) found = dlsym(library, name);
  }
  return found;
}

void detect_library() noexcept {
  pthread_mutex_lock(&g_mutex);
  detect_locked();
  pthread_mutex_unlock(&g_mutex);
}

bool library_is_known() noexcept { return g_is_known; }

}  // namespace aon::mpi
