/// Life of MPI in this process: from MPI_Init, or from the first call we see after an MPI_Init that
/// we did not (a library that calls PMPI_Init), to MPI_Finalize.
///
///     unknown --MPI_Init, or the first call that needs it--> ready --MPI_Finalize--> over
///     unknown, over --MPI_Session_init--> ready
///     ready ----MPI_Session_finalize of the last session, without MPI_Init--> unknown
///     ready ----MPI_Finalize while a session lives--> ready, as that session's
///
/// Thread: any.   Cost: one load when ready.
#pragma once

#include "mpi/handles.h"

namespace aon::mpi {

/// True between MPI_Init and MPI_Finalize. At the first time the world, the identity of the process
/// and the provider are defined.
bool mpi_is_usable() noexcept;

/// After a successful MPI_Init or MPI_Init_thread.
void mpi_is_initialized() noexcept;

/// Before the real MPI_Finalize: from here on we ask MPI nothing.
void mpi_is_ending() noexcept;

/// After a successful MPI_Finalize.
void mpi_is_finalized() noexcept;

/// After the first request that did not fit (requests.h), so that a killed job says it as well.
void requests_overflow() noexcept;

/// After the first communicator that cannot be told from another one (communicators.h).
void communicator_is_ambiguous() noexcept;

/// Sessions that are followed at a time. Of more it is said that they are not; the world is asked
/// of one that is.
constexpr uint32_t kMaxSessions = 4096;

/// After a successful MPI_Session_init.
void mpi_session_has_begun(Handle session) noexcept;

/// Before MPI_Session_finalize. True: when it succeeds, MPI is finalized.
bool mpi_session_is_ending(Handle session) noexcept;

}  // namespace aon::mpi
