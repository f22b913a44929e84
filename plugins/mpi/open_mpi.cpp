// Open MPI (4 to 6): handles are pointers, predefined ones are addresses of exported objects. A
// program may hold copies of them (copy relocations), so they are looked up as the program sees
// them.
#include <algorithm>

#include "mpi/handles.h"

namespace aon::mpi {
namespace {

/// Open MPI's MPI_Status, part of its ABI: tests/unit/mpi compares it with <mpi.h>.
struct OpenMpiStatus {
  int32_t source;
  int32_t tag;
  int32_t error;
  int32_t cancelled;
  uint64_t received_bytes;
};

Handle address(FindSymbol find, const char* name) { return reinterpret_cast<Handle>(find(name)); }

// The types that exist in every build.
constexpr const char* kDatatypes[] = {
    "ompi_mpi_char",
    "ompi_mpi_signed_char",
    "ompi_mpi_unsigned_char",
    "ompi_mpi_byte",
    "ompi_mpi_short",
    "ompi_mpi_unsigned_short",
    "ompi_mpi_int",
    "ompi_mpi_unsigned",
    "ompi_mpi_long",
    "ompi_mpi_unsigned_long",
    "ompi_mpi_long_long_int",
    "ompi_mpi_unsigned_long_long",
    "ompi_mpi_float",
    "ompi_mpi_double",
    "ompi_mpi_long_double",
    "ompi_mpi_wchar",
    "ompi_mpi_packed",
    "ompi_mpi_cxx_bool",
    "ompi_mpi_cxx_cplex",
    "ompi_mpi_cxx_dblcplex",
    "ompi_mpi_integer",
    "ompi_mpi_real",
    "ompi_mpi_dblprec",
    "ompi_mpi_2int",
    "ompi_mpi_float_int",
    "ompi_mpi_double_int",
    "ompi_mpi_long_int",
    "ompi_mpi_int8_t",
    "ompi_mpi_uint8_t",
    "ompi_mpi_int16_t",
    "ompi_mpi_uint16_t",
    "ompi_mpi_int32_t",
    "ompi_mpi_uint32_t",
    "ompi_mpi_int64_t",
    "ompi_mpi_uint64_t",
    "ompi_mpi_aint",
    "ompi_mpi_offset",
    "ompi_mpi_count",
    "ompi_mpi_c_bool",
    "ompi_mpi_c_float_complex",
    "ompi_mpi_c_double_complex",
    "ompi_mpi_character",
    "ompi_mpi_logical",
    "ompi_mpi_cplex",
    "ompi_mpi_dblcplex",
    "ompi_mpi_2integer",
    "ompi_mpi_2real",
    "ompi_mpi_2dblprec",
    "ompi_mpi_integer1",
    "ompi_mpi_integer2",
    "ompi_mpi_integer4",
    "ompi_mpi_integer8",
    "ompi_mpi_real4",
    "ompi_mpi_real8",
    "ompi_mpi_complex8",
    "ompi_mpi_complex16",
};

// A compiler spells the name of a common block in one of four ways.
constexpr const char* kInPlace[kSpellings] = {"mpi_fortran_in_place_", "mpi_fortran_in_place__",
                                              "mpi_fortran_in_place", "MPI_FORTRAN_IN_PLACE"};
constexpr const char* kStatusIgnore[kSpellings] = {
    "mpi_fortran_status_ignore_", "mpi_fortran_status_ignore__", "mpi_fortran_status_ignore",
    "MPI_FORTRAN_STATUS_IGNORE"};
constexpr const char* kStatusesIgnore[kSpellings] = {
    "mpi_fortran_statuses_ignore_", "mpi_fortran_statuses_ignore__", "mpi_fortran_statuses_ignore",
    "MPI_FORTRAN_STATUSES_IGNORE"};

/// Its Fortran calls the PMPI names, and hands on what they wrote only where they succeeded.
FortranAbi describe_fortran(FindSymbol find) {
  FortranAbi f = {};
  f.in_place = find_special(find, kInPlace);
  f.status_ignore = find_special(find, kStatusIgnore);
  f.statuses_ignore = find_special(find, kStatusesIgnore);
  f.integer = address(find, "ompi_mpi_integer");
  f.byte = address(find, "ompi_mpi_byte");
  f.keeps_failures = true;
  f.is_known = true;
  return f;
}

bool detect(Abi* out, const LoadedLibrary& library) {
  if (library.find_own("ompi_mpi_comm_world") == nullptr) return false;
  const FindSymbol find = library.find;
  Abi a = {};
  a.handle_mask = ~uint64_t{0};
  a.handle_bytes = 8;
  a.status_bytes = sizeof(OpenMpiStatus);
  a.source_offset = offsetof(OpenMpiStatus, source);
  a.tag_offset = offsetof(OpenMpiStatus, tag);
  a.error_offset = offsetof(OpenMpiStatus, error);
  a.cancelled_offset = offsetof(OpenMpiStatus, cancelled);
  a.cancelled_mask = ~0u;
  a.bytes_offset = offsetof(OpenMpiStatus, received_bytes);
  a.bytes_low_mask = ~uint64_t{0};
  a.error_class_mask = ~0;
  a.any_source = -1;
  a.any_tag = -1;
  a.proc_null = -2;
  a.root = -4;
  a.undefined = -32766;
  for (int level = 0; level < kThreadLevels; ++level) a.thread_levels[level] = level;
  a.error_other = 16;
  a.error_in_status = 18;
  a.error_pending = 19;
  a.topology_cartesian = 1;
  a.topology_graph = 2;
  a.topology_dist_graph = 3;
  a.in_place = reinterpret_cast<const void*>(1);
  a.status_ignore = nullptr;
  a.statuses_ignore = nullptr;
  a.comm_world = address(find, "ompi_mpi_comm_world");
  a.comm_self = address(find, "ompi_mpi_comm_self");
  a.comm_null = address(find, "ompi_mpi_comm_null");
  a.request_null = address(find, "ompi_request_null");
  if (!find_shared_requests(&a, library.find_own)) a.request_shared_size = 0;
  a.datatype_null = address(find, "ompi_mpi_datatype_null");
  a.group_null = address(find, "ompi_mpi_group_null");
  a.window_null = address(find, "ompi_mpi_win_null");
  a.operation_none = address(find, "ompi_mpi_op_no_op");
  a.lock_exclusive = 1;
  a.message_null = address(find, "ompi_message_null");
  a.message_no_proc = address(find, "ompi_message_no_proc");
  a.file = {.read_only = 2,
            .write_only = 4,
            .read_write = 8,
            .create = 1,
            .exclusive = 64,
            .delete_on_close = 16,
            .unique_open = 32,
            .sequential = 256,
            .append = 128,
            .seek_current = 602,
            .seek_end = 604};
  a.fortran = describe_fortran(find);
  *out = a;
  return true;
}

void visit_datatypes(FindSymbol find, VisitDatatype visit) {
  for (const char* name : kDatatypes) {
    if (void* datatype = find(name)) visit(reinterpret_cast<Handle>(datatype));
  }
}

}  // namespace

/// Open MPI 6 has one of its own for sends, a neighbour of the other.
bool find_shared_requests(Abi* out, FindSymbol find) {
  constexpr Handle kNear = 4096;
  const Handle any = address(find, "ompi_request_empty");
  const Handle send = address(find, "ompi_request_empty_send");
  const bool are_two = any - send < kNear || send - any < kNear;
  const Handle first = are_two ? std::min(any, send) : any;
  out->request_shared = first;
  out->request_shared_size = (are_two ? std::max(any, send) : any) - first + 1;
  return any != 0;
}

const Backend kOpenMpi = {detect, visit_datatypes, nullptr};

}  // namespace aon::mpi
