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
/// library's own where the code of the library calls, or the library was given the same call in
/// another language, or one on a file (Open MPI has ROMIO, which calls MPI_ names, in a file of its
/// own).
void note_inside(const Writer* w, const Site& site, const void* caller) noexcept;

/// How many of the program's there were so far.
uint64_t unrecorded_calls() noexcept;

}  // namespace aon::mpi
