// MPICH 3 and 4 and the libraries that share its ABI (Intel MPI, Cray MPICH, MVAPICH, ParaStation;
// https://www.mpich.org/abi). Handles are 32-bit numbers that the header states, so nothing is
// looked up. The members of that initiative are told by the one thing it fixes for the loader: the
// name libmpi*.so.12. Open MPI 1.10 had that name too, so Open MPI is asked for first.
#include "mpi/handles.h"

namespace aon::mpi {
namespace {

/// MPICH's MPI_Status, part of its ABI: tests/unit/mpi compares it with <mpi.h>.
struct MpichStatus {
  int32_t count_low;
  int32_t count_high_and_cancelled;  ///< bit 0: cancelled
  int32_t source;
  int32_t tag;
  int32_t error;
};

/// Requests that were complete at once, one handle per kind: the library's predefined ones.
constexpr Handle kPredefinedRequest = 0x6c000000;
constexpr Handle kPredefinedSize = 0x04000000;

// Names of the ABI; the most used first, because two types may want one slot of the cache.
constexpr uint32_t kDatatypes[] = {
    0x4c00080b,                                                  // double
    0x4c000405, 0x4c000406,                                      // int, unsigned
    0x4c000101, 0x4c00010d, 0x4c00040a, 0x4c000807, 0x4c000808,  // char, byte, float, long
    0x4c00010f, 0x4c000118, 0x4c000102, 0x4c00040e,              // packed, s/u char, wchar
    0x4c000203, 0x4c000204, 0x4c00100c, 0x4c000809, 0x4c000819,  // short, long double, long long
    0x4c000137, 0x4c000238, 0x4c000439, 0x4c00083a,              // int8_t ... int64_t
    0x4c00013b, 0x4c00023c, 0x4c00043d, 0x4c00083e,              // uint8_t ... uint64_t
    0x4c00013f, 0x4c000840, 0x4c001041, 0x4c002042,              // C bool and complex
    0x4c000843, 0x4c000844, 0x4c000845,                          // aint, offset, count
    0x4c000816, 0x8c000000, 0x8c000001, 0x8c000002,              // 2int, float_int, ...
    0x8c000003, 0x8c000004,                                      // short_int, long_double_int
    0x4c000133, 0x4c000834, 0x4c001035, 0x4c002036,              // C++ bool and complex
};

bool starts_with(const char* text, const char* start) {
  return strncmp(text, start, strlen(start)) == 0;
}

/// MPICH 4.3 has a libmpi_abi.so.12, with an early form of MPI 5's handles.
bool is_of_this_abi(const char* soname) {
  return starts_with(soname, "libmpi") && strstr(soname, ".so.12") != nullptr &&
         !starts_with(soname, "libmpi_abi");
}

constexpr const char* kInPlace[kSpellings] = {"MPIR_F08_MPI_IN_PLACE"};
constexpr const char* kStatusIgnore[kSpellings] = {"MPIR_F08_MPI_STATUS_IGNORE_OBJ"};
constexpr const char* kStatusesIgnore[kSpellings] = {"MPIR_F08_MPI_STATUSES_IGNORE_OBJ"};

/// Its mpi_send_ and mpi_send_f08ts_ call MPI_Send, so C's wrappers see them; what is left are
/// functions of mpi_f08 without buffers.
FortranAbi describe_fortran(FindSymbol find) {
  FortranAbi f = {};
  f.in_place = find_special(find, kInPlace);
  f.status_ignore = find_special(find, kStatusIgnore);
  f.statuses_ignore = find_special(find, kStatusesIgnore);
  f.integer = 0x4c00041b;
  f.byte = 0x4c00010d;
  f.plain_calls_c = true;
  f.is_known = true;
  return f;
}

bool detect(Abi* out, const LoadedLibrary& library) {
  if (!is_of_this_abi(library.soname)) return false;
  Abi a = {};
  a.handle_mask = 0xffffffffu;
  a.handle_bytes = 4;
  a.status_bytes = sizeof(MpichStatus);
  a.source_offset = offsetof(MpichStatus, source);
  a.tag_offset = offsetof(MpichStatus, tag);
  a.error_offset = offsetof(MpichStatus, error);
  a.cancelled_offset = offsetof(MpichStatus, count_high_and_cancelled);
  a.cancelled_mask = 1;
  a.bytes_offset = offsetof(MpichStatus, count_low);
  a.bytes_low_mask = 0xffffffffu;
  a.error_class_mask = 0x7f;
  a.any_source = -2;
  a.any_tag = -1;
  a.proc_null = -1;
  a.root = -3;
  a.undefined = -32766;
  for (int level = 0; level < kThreadLevels; ++level) a.thread_levels[level] = level;
  a.error_other = 15;
  a.error_in_status = 17;
  a.error_pending = 18;
  a.topology_cartesian = 2;
  a.topology_graph = 1;
  a.topology_dist_graph = 3;
  a.in_place = reinterpret_cast<const void*>(-1);
  a.status_ignore = reinterpret_cast<Status*>(1);
  a.statuses_ignore = reinterpret_cast<Status*>(1);
  a.comm_world = 0x44000000;
  a.comm_self = 0x44000001;
  a.comm_null = 0x04000000;
  a.request_null = 0x2c000000;
  a.request_shared = kPredefinedRequest;
  a.request_shared_size = kPredefinedSize;
  a.datatype_null = 0x0c000000;
  a.group_null = 0x08000000;
  a.window_null = 0x20000000;
  a.operation_none = 0x5800000e;
  a.lock_exclusive = 234;
  a.message_null = 0x2c000000;
  a.message_no_proc = 0x6c000000;
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
  a.fortran = describe_fortran(library.find);
  *out = a;
  return true;
}

void visit_datatypes(FindSymbol, VisitDatatype visit) {
  for (const uint32_t datatype : kDatatypes) visit(datatype);
}

}  // namespace

const Backend kMpich = {detect, visit_datatypes, nullptr};

}  // namespace aon::mpi
