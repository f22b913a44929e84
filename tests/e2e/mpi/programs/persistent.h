/// Persistent collectives, by whichever name the library has for them: PREPARE(Barrier)(...) is
/// MPI_Barrier_init(...), which Open MPI 5 has, too, or MPIX_Barrier_init(...) of Open MPI 4.
#pragma once

#include <mpi.h>

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define PREPARE(name) MPI_##name##_init
#elif defined(OPEN_MPI)
#include <mpi-ext.h>
#ifdef OMPI_HAVE_MPI_EXT_PCOLLREQ
#define PREPARE(name) MPIX_##name##_init
#endif
#endif
