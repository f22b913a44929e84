#include "mpi/library.h"

#include <aon/process_mutex.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "mpi/loaded.h"
#include "mpi/offered.h"

// aon/old_libc.h: without libdl nothing is loaded RTLD_LOCAL
#pragma weak dladdr1
#pragma weak dlopen
#pragma weak dlsym

namespace aon::mpi {

std::atomic<void*> functions[kFunctionCount];
Abi abi;
Queries queries;

namespace {

constinit ProcessMutex g_mutex;
// The first that knows it wins. Open MPI's libmpi_abi.so needs a library with Open MPI's handles.
constexpr const Backend* kBackends[] = {&kStandardAbi, &kOpenMpi, &kMpich};

bool g_is_detected AON_GUARDED_BY(g_mutex);
const Backend* g_backend;      // guarded by g_mutex until g_is_known, then constant
std::atomic<bool> g_is_known;  // who reads it too early only forwards
const char* g_soname = "";     // guarded by g_mutex until detection is over, then constant
LoadedFile g_file AON_GUARDED_BY(g_mutex);  // where the PMPI_ functions are
void* g_library AON_GUARDED_BY(g_mutex);    // the same for dlsym()
// libmpi that was loaded RTLD_LOCAL. Several threads may find it at once: the same one.
std::atomic<void*> g_local_library;

// Files that have MPI's C functions (or need one that has: dlsym() looks there as well), and
// those of its Fortran.
constexpr const char* kLibraries[] = {"libmpi.so", "libmpich.so", "libmpi_"};
constexpr const char* kFortranLibraries[] = {"libmpi_mpifh.so", "libmpi_usempif08.so",
                                             "libmpichfort.so"};

/// The addresses of the object that `inside` lies in.
struct Range {
  ElfW(Addr) inside;
  ElfW(Addr) start;
  ElfW(Addr) end;

  bool has(const void* address) const {
    const auto at = reinterpret_cast<ElfW(Addr)>(address);
    return at >= start && at < end;
  }
};

int missing_function() { return abi.error_other != 0 ? abi.error_other : 16; }

/// MPI_Initialized and MPI_Finalized without a library: who finds ours may ask, to know whether to
/// do without MPI.
int never(int* flag) {
  if (flag != nullptr) *flag = 0;
  return kSuccess;
}

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
  if (!has_libdl()) return nullptr;
  Wanted wanted;
  wanted.file = file;
  wanted.path[0] = '\0';
  dl_iterate_phdr(note_library, &wanted);
  return wanted.path[0] != '\0' ? dlopen(wanted.path, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
}

/// libmpi among the loaded libraries, or one that needs it: dlsym() looks there as well; null when
/// there is none.
void* open_local_library() {
  void* library = g_local_library.load(std::memory_order_relaxed);
  for (const char* file : kLibraries) {
    if (library == nullptr) library = open_loaded(file);
  }
  if (library != nullptr) g_local_library.store(library, std::memory_order_relaxed);
  return library;
}

void* find_locally(const char* name) {
  void* library = open_local_library();
  return library != nullptr ? dlsym(library, name) : nullptr;
}

/// The next `MPI_name` behind us, else `PMPI_name`, else the one of a library loaded RTLD_LOCAL.
void* find_next(const char* name) {
  char profiling_name[128];
  snprintf(profiling_name, sizeof profiling_name, "P%s", name);
  if (void* next = symbol_behind_us(name)) return next;
  if (void* next = symbol_behind_us(profiling_name)) return next;
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
  query(&queries.group_from_session_pset, "PMPI_Group_from_session_pset");
  query(&queries.session_f2c, "PMPI_Session_f2c");
  query(&queries.session_get_info, "PMPI_Session_get_info");
  query(&queries.info_get_string, "PMPI_Info_get_string");
  query(&queries.info_free, "PMPI_Info_free");
  query(&queries.type_size, "PMPI_Type_size");
  query(&queries.type_size_x, "PMPI_Type_size_x");
  query(&queries.topo_test, "PMPI_Topo_test");
  query(&queries.cartdim_get, "PMPI_Cartdim_get");
  query(&queries.cart_get, "PMPI_Cart_get");
  query(&queries.cart_shift, "PMPI_Cart_shift");
  query(&queries.graph_neighbors_count, "PMPI_Graph_neighbors_count");
  query(&queries.graph_neighbors, "PMPI_Graph_neighbors");
  query(&queries.dist_graph_neighbors_count, "PMPI_Dist_graph_neighbors_count");
  query(&queries.dist_graph_neighbors, "PMPI_Dist_graph_neighbors");
  query(&queries.isend, "PMPI_Isend");
  query(&queries.irecv, "PMPI_Irecv");
  query(&queries.isendrecv, "PMPI_Isendrecv");
  query(&queries.wait, "PMPI_Wait");
  query(&queries.type_get_extent, "PMPI_Type_get_extent");
  query(&queries.type_get_true_extent, "PMPI_Type_get_true_extent");
  query(&queries.file_get_position, "PMPI_File_get_position");
  query(&queries.file_get_byte_offset, "PMPI_File_get_byte_offset");
  query(&queries.file_f2c, "PMPI_File_f2c");
  query(&queries.comm_f2c, "PMPI_Comm_f2c");
  query(&queries.comm_c2f, "PMPI_Comm_c2f");
  query(&queries.type_f2c, "PMPI_Type_f2c");
  query(&queries.type_c2f, "PMPI_Type_c2f");
  query(&queries.request_f2c, "PMPI_Request_f2c");
  query(&queries.request_c2f, "PMPI_Request_c2f");
  query(&queries.message_f2c, "PMPI_Message_f2c");
  query(&queries.window_f2c, "PMPI_Win_f2c");
  query(&queries.group_f2c, "PMPI_Group_f2c");
  query(&queries.operation_f2c, "PMPI_Op_f2c");
}

int note_range(dl_phdr_info* info, size_t, void* out) {
  Range& range = *static_cast<Range*>(out);
  range.start = ~ElfW(Addr){0};
  range.end = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    const ElfW(Addr) at = info->dlpi_addr + part.p_vaddr;
    if (at < range.start) range.start = at;
    if (at + part.p_memsz > range.end) range.end = at + part.p_memsz;
  }
  return range.inside >= range.start && range.inside < range.end ? 1 : 0;
}

/// True for the place in a program of fixed address that stands for a function of a library whose
/// address the program takes.
bool is_stub(const void* address) {
  if (dladdr1 == nullptr) return false;  // what is found by the files' own tables is defined there
  Dl_info file;
  const ElfW(Sym)* symbol = nullptr;
  return dladdr1(address, &file, reinterpret_cast<void**>(const_cast<ElfW(Sym)**>(&symbol)),
                 RTLD_DL_SYMENT) != 0 &&
         symbol != nullptr && symbol->st_shndx == SHN_UNDEF;
}

void* find_in_library(const char* name) AON_REQUIRES(g_mutex) {
  return has_libdl() ? dlsym(g_library, name) : symbol_since(g_file, name);
}

bool has_all_queries() {
  return queries.comm_size != nullptr && queries.comm_rank != nullptr &&
         queries.type_size != nullptr && queries.comm_group != nullptr &&
         queries.group_translate_ranks != nullptr && queries.group_free != nullptr;
}

void detect_locked() AON_REQUIRES(g_mutex) {
  if (g_is_detected) return;
  g_is_detected = true;
  const void* init = find_symbol("PMPI_Init");
  if (init != nullptr) g_file = file_of(init);
  if (g_file.dynamic == nullptr) return;
  g_soname = soname_of(g_file);
  if (has_libdl()) g_library = dlopen(g_file.path, RTLD_LAZY | RTLD_NOLOAD);  // null: the program
  const LoadedLibrary library = {g_soname, find_in_library, find_symbol};
  Abi found;
  for (const Backend* backend : kBackends) {
    if (!backend->detect(&found, library)) continue;
    abi = found;
    g_backend = backend;
    find_queries();
    g_is_known.store(has_all_queries(), std::memory_order_release);  // pairs with mpi:known
    return;
  }
}

}  // namespace

void* find_symbol(const char* name) noexcept {
  if (void* symbol = symbol_of_program(name)) return symbol;
  return find_locally(name);
}

void* resolve_function(uint32_t number) noexcept {
  const int saved_errno = errno;
  g_mutex.lock();
  void* found = find_next(kFunctionNames[number]);
  if (found != nullptr) detect_locked();
  const bool is_known = library_is_known();
  g_mutex.unlock();
  if (is_known) offer_what_the_library_has();
  errno = saved_errno;
  if (found == nullptr && !is_known) {  // not kept: it may still be loaded
    const bool is_asked = number == kSiteInitialized.id || number == kSiteFinalized.id;
    return is_asked ? reinterpret_cast<void*>(&never) : reinterpret_cast<void*>(&missing_function);
  }
  // What the library lacks: the second poll on calls what stands here.
  if (found == nullptr) found = reinterpret_cast<void*>(&missing_function);
  functions[number].store(found, std::memory_order_relaxed);
  return found;
}

void* find_behind(const char* name) noexcept {
  if (void* next = symbol_behind_us(name)) return next;
  void* found = nullptr;
  for (const char* file : kFortranLibraries) {
    void* library = found == nullptr ? open_loaded(file) : nullptr;
    if (library != nullptr) found = dlsym(library, name);
  }
  return found;
}

void detect_library() noexcept {
  g_mutex.lock();
  detect_locked();
  g_mutex.unlock();
}

uint32_t functions_in_front(const char** name) noexcept {
  Range own = {reinterpret_cast<ElfW(Addr)>(&abi), 0, 0};
  if (dl_iterate_phdr(note_range, &own) == 0) return 0;
  uint32_t count = 0;
  const LoadedFile own_file = file_of(&abi);
  for (const char* wanted : kFunctionNames) {
    if (definition_in(own_file, wanted) == nullptr) continue;  // not offered (offered.h)
    const void* found = symbol_of_program(wanted);
    if (found == nullptr || own.has(found) || is_stub(found)) continue;
    if (count++ == 0) *name = wanted;
  }
  return count;
}

bool library_is_known() noexcept {
  return g_is_known.load(std::memory_order_acquire);  // pairs with mpi:known
}

bool are_of_one_file(const void* a, const void* b) noexcept {
  const ElfW(Dyn)* dynamic = file_of(a).dynamic;
  return dynamic != nullptr && dynamic == file_of(b).dynamic;
}

const Backend* library_backend() noexcept { return g_backend; }

const char* library_soname() noexcept { return g_soname; }

}  // namespace aon::mpi
