/// Sends, receives and collectives that the program calls inside another MPI call: in callbacks of
/// attributes, error handlers, operations and generalized requests. They are only forwarded, as is
/// what a library calls itself by MPI_ names, but counted, and the ledger says that they are
/// missing.
///
/// Thread: any.   Cost: nothing but inside another call; a definition at the first one.
#pragma once

#include <aon/writer.h>

namespace aon::mpi {

/// A call of `site` from `caller`, inside another one, is about to be forwarded. It is the
/// library's own where the library was given the same call in Fortran (a callback in Fortran that
/// calls the function around it is taken for that), or one on a file: ROMIO calls MPI_ names. It
/// goes on with its nonblocking collectives inside of any call, so what comes from ROMIO's own file
/// is the library's, and what comes from the library's while there is such a collective. What else
/// the libraries we know send and receive they do by other names. Else who called is no evidence: a
/// callback whose last word is its call has left the stack by then.
void note_inside(const Writer* w, const Site& site, const void* caller) noexcept;

/// How many of the program's there were so far.
uint64_t unrecorded_calls() noexcept;

}  // namespace aon::mpi
