#include "mpi/datatypes.h"

#include "mpi/fortran.h"
#include "mpi/library.h"
#include "mpi/state.h"

namespace aon::mpi {

DatatypeSlot datatypes[kDatatypeSlots];

namespace {

uint64_t ask(Handle datatype) {
  int byte_count = 0;
  if (queries.type_size(datatype, &byte_count) != kSuccess) return 0;
  if (byte_count >= 0) return static_cast<uint64_t>(byte_count);
  int64_t large_byte_count = 0;  // MPI_UNDEFINED: more than an int
  if (queries.type_size_x == nullptr) return 0;
  if (queries.type_size_x(datatype, &large_byte_count) != kSuccess) return 0;
  return large_byte_count > 0 ? static_cast<uint64_t>(large_byte_count) : 0;
}

constexpr uint32_t kMaxMoves = 16;  ///< a type that finds no place is asked for as a derived one

/// The slot of a basic type, or the first free one where it may stand; null: neither.
DatatypeSlot* place_of(Handle datatype) {
  const uint32_t first = datatype_slot(datatype);
  for (uint32_t i = 0; i <= kMaxMoves; ++i) {
    DatatypeSlot& slot = datatypes[(first + i) % kDatatypeSlots];
    if (slot.datatype == datatype || slot.datatype == 0) return &slot;
  }
  return nullptr;
}

void learn(Handle datatype) {
  learn_fortran_datatype(datatype);
  DatatypeSlot* slot = place_of(datatype);
  if (slot == nullptr || slot->datatype != 0) return;
  slot->byte_count = ask(datatype);
  slot->datatype = datatype;
}

}  // namespace

const DatatypeSlot* find_moved(Handle datatype) {
  const DatatypeSlot* slot = place_of(datatype);
  return slot != nullptr && slot->datatype == datatype && datatype != 0 ? slot : nullptr;
}

void learn_datatypes() { library_backend()->visit_datatypes(find_symbol, learn); }

/// The program must not hear of our question: MPI_DATATYPE_NULL is not asked (its error handler
/// would), nor anything before MPI_Init or after MPI_Finalize (the library would end the program).
uint64_t ask_datatype_bytes(Handle datatype) {
  if (const DatatypeSlot* slot = find_moved(datatype); slot != nullptr) return slot->byte_count;
  return datatype != abi.datatype_null && mpi_is_usable() ? ask(datatype) : 0;
}

}  // namespace aon::mpi
