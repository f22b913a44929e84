/// Bytes of a datatype. Basic types are kept in a table; derived ones come and go, and their
/// handles are used again, so they are asked for at each use: after the program's call, and only
/// when MPI took it. A handle that is none would be an error of ours, which the program's error
/// handler would hear of.
///
/// Thread: the table is filled in once, by the first thread in MPI_Init; then only read.
/// Cost: about 1 ns for a basic type, one PMPI_Type_size for another.
#pragma once

#include "mpi/handles.h"

namespace aon::mpi {

constexpr uint32_t kDatatypeSlots = 1024;  ///< a power of two, many times the number of types

struct DatatypeSlot {
  Handle datatype;  ///< 0: free
  uint64_t byte_count;
};
[[gnu::visibility("hidden")]] extern DatatypeSlot datatypes[kDatatypeSlots];

/// Handles are aligned addresses or numbered constants; both spread well under this factor.
inline uint32_t datatype_slot(Handle datatype) {
  return static_cast<uint32_t>((datatype * 0x9e3779b97f4a7c15ull) >> 54);
}

void learn_datatypes();
/// A basic type whose slot another one has stands in one of the next; null: it is no basic type.
const DatatypeSlot* find_moved(Handle datatype);
uint64_t ask_datatype_bytes(Handle datatype);

inline uint64_t datatype_bytes(Handle datatype) {
  const Handle handle = canonical(datatype);
  const DatatypeSlot& slot = datatypes[datatype_slot(handle)];
  if (__builtin_expect(slot.datatype == handle, 1)) return slot.byte_count;
  return ask_datatype_bytes(handle);
}

/// True where datatype_bytes() asks nobody.
inline bool is_basic(Handle datatype) {
  const Handle handle = canonical(datatype);
  return __builtin_expect(datatypes[datatype_slot(handle)].datatype == handle, 1) ||
         find_moved(handle) != nullptr;
}

inline uint64_t bytes_of(int64_t count, Handle datatype) {
  return count <= 0 ? 0 : static_cast<uint64_t>(count) * datatype_bytes(datatype);
}

}  // namespace aon::mpi
