/// The seam between the wrappers and one MPI library: what handles, statuses and constants look
/// like. The wrappers are compiled without any <mpi.h>; they see handles as machine words and
/// everything else through `abi`, which a backend (open_mpi.cpp, mpich.cpp, standard_abi.cpp) fills
/// in before the first real call.
///
///     Handle by value      one register: a pointer (Open MPI, MPI 5) or an int in its low half
///                          (MPICH)
///     MPI_File             a pointer in every library: load_file()
///     array of handles     8 or 4 bytes each: load_handle(), store nothing
///     Status               opaque; its fields lie at offsets that the backend names, or the
///                          library is asked for them
///
/// Thread: `abi` is written once, before the first real MPI call returns; then only read.
/// Cost: one load per constant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace aon::mpi {

using Handle = uint64_t;
struct Status;  ///< the library's MPI_Status, never looked into but by offset

constexpr uint32_t kMaxStatusBytes = 32;  ///< Open MPI has 24, MPICH 20, MPI 5 has 32
constexpr int kSuccess = 0;               ///< MPI_SUCCESS, fixed by the standard

/// What Fortran programs see of a library. A Fortran handle is an INTEGER; where C's are integers
/// as well both are the same number. A Fortran status is a C status. The special addresses are
/// those of variables in common blocks, one per way to spell their names; null: none.
constexpr uint32_t kSpellings = 4;
struct SpecialAddress {
  const void* spellings[kSpellings];
  uint64_t lowest;  ///< of these
  uint64_t range;   ///< from there to the highest
};
struct FortranAbi {
  bool is_known;                   ///< false: the Fortran wrappers only forward
  bool plain_calls_c;              ///< mpi_send_ calls MPI_Send, whose wrapper sees it
  bool keeps_failures;             ///< completions that failed write C's indices alone
  Handle integer;                  ///< MPI_INTEGER
  Handle byte;                     ///< MPI_BYTE
  SpecialAddress in_place;         ///< MPI_IN_PLACE
  SpecialAddress status_ignore;    ///< MPI_STATUS_IGNORE
  SpecialAddress statuses_ignore;  ///< MPI_STATUSES_IGNORE
};

/// Numbers of MPI-IO.
struct FileAbi {
  int32_t read_only;  ///< MPI_MODE_RDONLY; the others alike
  int32_t write_only;
  int32_t read_write;
  int32_t create;
  int32_t exclusive;
  int32_t delete_on_close;
  int32_t unique_open;
  int32_t sequential;
  int32_t append;
  int32_t seek_current;  ///< MPI_SEEK_CUR
  int32_t seek_end;      ///< MPI_SEEK_END
};

/// Levels of thread support; their numbers differ, their order does not.
constexpr int kThreadLevels = 4;

struct Abi {
  uint64_t handle_mask;  ///< bits of a register that are the handle
  uint32_t handle_bytes;
  uint32_t status_bytes;
  uint32_t source_offset;  ///< in a status, each an int
  uint32_t tag_offset;
  uint32_t error_offset;
  /// MPI_Test_cancelled and MPI_Get_count_c, where nobody else knows where a status has that; or
  /// null
  int (*test_cancelled)(const Status* status, int* flag);
  int (*get_count)(const Status* status, Handle datatype, int64_t* count);
  uint32_t cancelled_offset;
  uint32_t cancelled_mask;
  uint32_t bytes_offset;    ///< in a status, u64: bytes received
  uint64_t bytes_low_mask;  ///< bits of it that count; the others count half: MPICH keeps a flag
                            ///< between
  int (*error_class)(int32_t code, int* out);  ///< MPI_Error_class, where no bits tell; else null
  int32_t error_class_mask;                    ///< bits of an error code that are its class
  int32_t any_source;
  int32_t any_tag;
  int32_t proc_null;
  int32_t root;  ///< MPI_ROOT
  int32_t undefined;
  int32_t thread_levels[kThreadLevels];  ///< MPI_THREAD_SINGLE to MPI_THREAD_MULTIPLE
  int32_t error_other;                   ///< MPI_ERR_OTHER
  int32_t error_in_status;               ///< MPI_ERR_IN_STATUS, a class
  int32_t error_pending;                 ///< MPI_ERR_PENDING, a class
  int32_t topology_cartesian;  ///< what MPI_Topo_test says: MPI_CART, MPI_GRAPH, MPI_DIST_GRAPH
  int32_t topology_graph;
  int32_t topology_dist_graph;
  const void* in_place;     ///< MPI_IN_PLACE
  Status* status_ignore;    ///< MPI_STATUS_IGNORE
  Status* statuses_ignore;  ///< MPI_STATUSES_IGNORE
  Handle comm_world;
  Handle comm_self;
  Handle comm_null;
  Handle request_null;
  Handle request_shared;  ///< the first of the handles that all requests that were complete at once
  Handle request_shared_size;  ///< have, and how far these reach; 0: not known (requests.h)
  Handle datatype_null;
  Handle group_null;
  Handle window_null;
  Handle operation_none;  ///< MPI_NO_OP
  int32_t lock_exclusive;
  Handle message_null;
  Handle message_no_proc;
  FileAbi file;
  FortranAbi fortran;
};

/// Hidden where it is declared, as all that hot paths look at: then its address is known without a
/// look or a register.
[[gnu::visibility("hidden")]] extern Abi abi;

/// Finds an object or function of the loaded MPI library (library.h: find_symbol).
using FindSymbol = void* (*)(const char* name);

/// Looks for the variable that `names` are spellings of; null: no name.
inline SpecialAddress find_special(FindSymbol find, const char* const (&names)[kSpellings]) {
  SpecialAddress address = {{}, ~uint64_t{0}, 0};
  uint64_t highest = 0;
  for (uint32_t i = 0; i < kSpellings; ++i) {
    address.spellings[i] = names[i] != nullptr ? find(names[i]) : nullptr;
    if (address.spellings[i] == nullptr) continue;
    const auto at = reinterpret_cast<uint64_t>(address.spellings[i]);
    if (at < address.lowest) address.lowest = at;
    if (at > highest) highest = at;
  }
  if (highest != 0) address.range = highest - address.lowest;
  return address;
}

using VisitDatatype = void (*)(Handle datatype);

/// The library that MPI calls of this process end in.
struct LoadedLibrary {
  const char* soname;   ///< what programs are linked to it by; empty when it has no name
  FindSymbol find_own;  ///< in it alone: the process may have loaded another MPI library as well
  FindSymbol find;      ///< as the program sees it: it may hold copies of objects
};

/// One kind of library.
struct Backend {
  /// Fills in `out` and returns true if `library` is of this kind.
  bool (*detect)(Abi* out, const LoadedLibrary& library);
  /// Visits the basic datatypes, the most used first, for the cache of their sizes.
  void (*visit_datatypes)(FindSymbol find, VisitDatatype visit);
  /// What is to be said in the ledger where the process has Fortran's functions, then what to do:
  /// two strings. Null: nothing.
  const char* caveat;
};
/// Open MPI's shared requests, by whichever ABI. False: the library is not Open MPI.
bool find_shared_requests(Abi* out, FindSymbol find);

extern const Backend kOpenMpi;
extern const Backend kMpich;
extern const Backend kStandardAbi;

inline Handle canonical(Handle handle) { return handle & abi.handle_mask; }

/// Handle `index` of an array of C handles.
inline Handle load_handle(const void* handles, int index) {
  if (__builtin_expect(abi.handle_bytes == 8, true)) {
    return static_cast<const uint64_t*>(handles)[index];
  }
  return static_cast<const uint32_t*>(handles)[index];
}

/// What a request that Fortran has begun is known by: its INTEGER, which needs no call of the
/// library. No address and no number of a library has this bit (requests.h).
constexpr Handle kOfFortran = Handle{1} << 63;
inline Handle request_of_fortran(int32_t number) {
  return kOfFortran | static_cast<uint32_t>(number);
}

/// Handles in memory of the program: C's, or Fortran's, which are converted one by one. A pointer
/// to one handle is an array of one.
struct Handles {
  using Convert = Handle (*)(const void* fortran_handle) noexcept;

  Handles() = default;
  // NOLINTNEXTLINE(google-explicit-constructor)
  [[gnu::always_inline]] Handles(const void* c_handles) : data(c_handles), convert(nullptr) {}
  [[gnu::always_inline]] Handles(const void* fortran_handles, Convert from_fortran)
      : data(fortran_handles), convert(from_fortran) {}

  [[gnu::always_inline]] Handle operator[](int index) const {
    if (convert != nullptr) return convert(static_cast<const int32_t*>(data) + index);
    return load_handle(data, index);
  }
  bool is_null() const { return data == nullptr; }
  /// Whether `request`, which was at `index` before a call, is there still.
  bool has_kept(int index, Handle request) const {
    if (convert != nullptr && (request & kOfFortran) != 0) {
      return request_of_fortran(static_cast<const int32_t*>(data)[index]) == request;
    }
    return (*this)[index] == request;
  }
  /// The first `count` of them. Looks once at what they are, not for each.
  [[gnu::always_inline]] void copy(int count, Handle* to) const {
    if (convert == nullptr && abi.handle_bytes == 8) {
      // Two at a time, and no call of memcpy(): most often there are two or three.
      const auto* from = static_cast<const uint64_t*>(data);
      int i = 0;
      for (; i + 1 < count; i += 2) {
        __builtin_memcpy(to + i, from + i, 2 * sizeof(Handle));
        asm("" : "+r"(i));
      }
      if (i < count) to[i] = from[i];
    } else if (convert == nullptr) {
      for (int i = 0; i < count; ++i) to[i] = static_cast<const uint32_t*>(data)[i];
    } else {
      for (int i = 0; i < count; ++i) to[i] = (*this)[i];
    }
  }

  const void* data;
  Convert convert;
};

[[gnu::always_inline]] inline Handle load_handle(Handles handles) { return handles[0]; }

/// The handle at `handle`, or `none` where a program passes a null pointer, which MPI refuses.
[[gnu::always_inline]] inline Handle handle_at(Handles handle, const Handle& none) {
  if (handle.convert != nullptr) return handle[0];  // Fortran's INTEGER is always there
  return __builtin_expect(handle.is_null(), false) ? none : handle[0];
}

/// The MPI_File at `file`; 0 where a program passes a null pointer.
inline Handle load_file(Handles file) {
  if (file.is_null()) return 0;
  if (file.convert != nullptr) return file.convert(file.data);
  Handle handle;
  memcpy(&handle, file.data, sizeof handle);
  return handle;
}

inline const Status* status_at(const Status* statuses, int index) {
  return reinterpret_cast<const Status*>(reinterpret_cast<const char*>(statuses) +
                                         static_cast<ptrdiff_t>(index) * abi.status_bytes);
}
inline int32_t status_int(const Status* status, uint32_t offset) {
  int32_t value;
  memcpy(&value, reinterpret_cast<const char*>(status) + offset, sizeof value);
  return value;
}
inline int32_t status_source(const Status* s) { return status_int(s, abi.source_offset); }
inline int32_t status_tag(const Status* s) { return status_int(s, abi.tag_offset); }
inline int32_t status_error(const Status* s) { return status_int(s, abi.error_offset); }
inline bool status_cancelled(const Status* s) {
  if (abi.test_cancelled != nullptr) {
    int flag = 0;
    return abi.test_cancelled(s, &flag) == kSuccess && flag != 0;
  }
  return (static_cast<uint32_t>(status_int(s, abi.cancelled_offset)) & abi.cancelled_mask) != 0;
}
inline uint64_t status_bytes(const Status* status) {
  if (abi.get_count != nullptr) {
    int64_t count = 0;
    const int result = abi.get_count(status, abi.fortran.byte, &count);
    return result == kSuccess && count > 0 ? static_cast<uint64_t>(count) : 0;
  }
  uint64_t value;
  memcpy(&value, reinterpret_cast<const char*>(status) + abi.bytes_offset, sizeof value);
  return (value & abi.bytes_low_mask) | (value >> 1 & ~abi.bytes_low_mask);
}
/// 0 to 3, MPI_THREAD_MULTIPLE; this, too, where the library says what is none: threads are then
/// reckoned with.
inline int thread_level(int32_t number) {
  for (int level = 0; level < kThreadLevels; ++level) {
    if (abi.thread_levels[level] == number) return level;
  }
  return kThreadLevels - 1;
}
inline bool is_error_class(int32_t code, int32_t error_class) {
  if (abi.error_class != nullptr) {
    int found = kSuccess;
    return code != kSuccess && abi.error_class(code, &found) == kSuccess && found == error_class;
  }
  return (code & abi.error_class_mask) == error_class;
}

/// True for a handle that many requests have at once.
inline bool is_shared_request(Handle request) {
  return request - abi.request_shared < abi.request_shared_size;
}

/// Room for a status of our own, where the program ignores it.
struct alignas(8) OwnStatus {
  char bytes[kMaxStatusBytes];
  Status* get() { return reinterpret_cast<Status*>(bytes); }
};

}  // namespace aon::mpi
