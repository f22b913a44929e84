/// What the MPI library lacks is not there for the program either, though we have all functions:
/// some programs go by which there are, and do without the others. mpi4py's wheels have weak
/// references, and send by MPI_Send where the one to MPI_Send_c is null; others ask dlsym().
///
/// References that are bound to us already become null, and our symbols of such functions are taken
/// out of the table in which ld.so looks names up later. Before the first call of MPI nobody knows
/// which library it will be: until then all functions are there.
///
/// Thread: whoever finds the library, once.   Signal: no.   Cost: about 1 ms, once.
/// Errors: where /proc/self/mem cannot be written all stay, and return MPI_ERR_OTHER.
#pragma once

#include "mpi/loaded.h"

namespace aon::mpi {

/// `library` has most of them; `find` looks elsewhere as well, for those that it has not.
void hide_lacking_functions(const LoadedFile& library, void* (*find)(const char* name)) noexcept;

}  // namespace aon::mpi
