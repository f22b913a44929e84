/// Whose standard error a launcher has to wait for. MPICH's hydra ends when nobody holds the
/// standard error of its ranks; the process that aon-run leaves behind to wait for the files
/// (launcher/waiter.h) holds it, so that the launch ends when they are there. Where a rank fails,
/// hydra would take the status of those it kills meanwhile for the launch's: so a rank asks for it
/// back while it may fail, and gives its own when it no longer can.
///
///     MPI_Init ----- aon_take_back_stderr ---> the waiter lets go of it
///     MPI_Finalize - aon_lend_stderr --------> the waiter has a descriptor of it again
///
/// Nothing happens under other launchers, or where nobody waits.
#pragma once

#include <aon/writer.h>

namespace aon {
extern "C" {

/// Thread: any.   Signal: never.   Cost: under hydra five syscalls, else two look-ups in environ.
AON_EXPORT void aon_take_back_stderr() noexcept;

/// The descriptor lies in the waiter's socket before this returns: the rank may end at once.
/// Thread: any.   Signal: never.   Cost: as above.
AON_EXPORT void aon_lend_stderr() noexcept;
}

}  // namespace aon
