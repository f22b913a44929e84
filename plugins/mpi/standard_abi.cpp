// The ABI of MPI 5 (MPI-5.0, chapter 20, appendix A; https://github.com/mpi-forum/mpi-abi-stubs),
// told by the name that it fixes for the loader, libmpi_abi, and by the version of the ABI, which
// the library tells: MPICH 4.3 has the name, but not the numbers. Handles are pointers, predefined
// ones small numbers that the header states. Where a status has its bytes, whether it was cancelled
// and which class an error code has is each library's own matter, so the library is asked.
//
// Tried with MPICH 5.0.2 and Open MPI 6.0.0rc2; the project's own tests have a made-up library. The
// ABI says nothing of Fortran, so calls from there are only forwarded; those that end in an MPI_
// function of C are seen there.
#include "mpi/handles.h"

namespace aon::mpi {
namespace {

/// What is public of MPI 5's MPI_Status.
struct StandardStatus {
  int32_t source;
  int32_t tag;
  int32_t error;
  int32_t internal[5];
};

constexpr Handle kByte = 0x247;

// Those that every library must have: to ask for the size of another would be an error, which the
// program's error handler hears. The most used first, because two may want one slot of the cache.
constexpr uint16_t kDatatypes[] = {
    0x214, 0x209, 0x20d, 0x243, 0x247, 0x210, 0x20a,  // double, int, unsigned, char, byte, ...
    0x20e, 0x20b, 0x20f, 0x208, 0x20c, 0x244, 0x245,  // other C integers
    0x240, 0x241, 0x248, 0x249, 0x250, 0x251, 0x258, 0x259,  // int8_t ... uint64_t
    0x201, 0x202, 0x203, 0x207, 0x220, 0x238, 0x23c,         // aint, ..., packed, C bool, wchar
    0x212, 0x216, 0x224,                                     // complex
    0x228, 0x229, 0x22a, 0x22b, 0x22c, 0x22d,                // pairs
};

constexpr char kCaveat[] =
    "of Fortran over MPI 5's ABI those calls are recorded that call C's"
    "\0compare the counts in /profile with the program's own, or use Open MPI's or MPICH's own ABI";

constexpr int kAbiVersion = 1;  ///< the major one, of MPI 5

/// The function `name` of the library itself.
template <class Function>
bool find(Function** out, const LoadedLibrary& library, const char* name) {
  *out = reinterpret_cast<Function*>(library.find_own(name));
  return *out != nullptr;
}

/// May be asked before MPI_Init.
bool has_version(const LoadedLibrary& library) {
  int (*get_version)(int* major, int* minor);
  int major = -1;
  int minor = -1;
  return find(&get_version, library, "PMPI_Abi_get_version") &&
         get_version(&major, &minor) == kSuccess && major == kAbiVersion;
}

bool detect(Abi* out, const LoadedLibrary& library) {
  constexpr char kName[] = "libmpi_abi.so";
  if (strncmp(library.soname, kName, sizeof kName - 1) != 0) return false;
  Abi a = {};
  a.handle_mask = ~uint64_t{0};
  a.handle_bytes = 8;
  a.status_bytes = sizeof(StandardStatus);
  a.source_offset = offsetof(StandardStatus, source);
  a.tag_offset = offsetof(StandardStatus, tag);
  a.error_offset = offsetof(StandardStatus, error);
  if (!find(&a.test_cancelled, library, "PMPI_Test_cancelled") ||
      !find(&a.get_count, library, "PMPI_Get_count_c") ||
      !find(&a.error_class, library, "PMPI_Error_class") || !has_version(library)) {
    return false;
  }
  a.any_source = -1;
  a.any_tag = -2;
  a.proc_null = -3;
  a.root = -4;
  a.undefined = -32766;
  constexpr int32_t kLevels[kThreadLevels] = {0, 1024, 2048, 4096};
  memcpy(a.thread_levels, kLevels, sizeof kLevels);
  a.error_other = 16;
  a.error_pending = 18;
  a.error_in_status = 19;
  a.topology_cartesian = 211;
  a.topology_graph = 212;
  a.topology_dist_graph = 213;
  a.in_place = reinterpret_cast<const void*>(1);
  a.status_ignore = nullptr;
  a.statuses_ignore = nullptr;
  a.comm_null = 0x100;
  a.comm_world = 0x101;
  a.comm_self = 0x102;
  a.request_null = 0x180;
  if (!find_shared_requests(&a, library.find_own)) a.request_shared_size = 0;
  a.datatype_null = 0x200;
  a.group_null = 0x108;
  a.window_null = 0x110;
  a.operation_none = 0x3d;
  a.lock_exclusive = 301;
  a.message_null = 0x128;
  a.message_no_proc = 0x129;
  a.file = {.read_only = 16,
            .write_only = 256,
            .read_write = 32,
            .create = 2,
            .exclusive = 8,
            .delete_on_close = 4,
            .unique_open = 128,
            .sequential = 64,
            .append = 1,
            .seek_current = 401,
            .seek_end = 402};
  a.fortran.byte = kByte;
  *out = a;
  return true;
}

void visit_datatypes(FindSymbol, VisitDatatype visit) {
  for (const uint16_t datatype : kDatatypes) visit(datatype);
}

}  // namespace

const Backend kStandardAbi = {detect, visit_datatypes, kCaveat};

}  // namespace aon::mpi
