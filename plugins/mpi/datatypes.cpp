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

/// Two types of one slot: the first stays, the other is asked for.
void learn(Handle datatype) {
  learn_fortran_datatype(datatype);
  DatatypeSlot& slot = datatypes[datatype_slot(datatype)];
  if (slot.datatype != 0) return;
  slot.byte_count = ask(datatype);
  slot.datatype = datatype;
}

}  // namespace

void learn_datatypes() { library_backend()->visit_datatypes(find_symbol, learn); }

/// The program must not hear of our question: MPI_DATATYPE_NULL is not asked (its error handler
/// would), nor anything before MPI_Init or after MPI_Finalize (the library would end the program).
uint64_t ask_datatype_bytes(Handle datatype) {
  return datatype != abi.datatype_null && mpi_is_usable() ? ask(datatype) : 0;
}

}  // namespace aon::mpi
