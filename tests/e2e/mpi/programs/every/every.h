/// A program that calls every function of the MPI library it is built with at least once, on two
/// ranks, and checks what each does. One file per part of MPI; main.c calls them in turn. With
/// LARGE the functions that have a large-count form are called by it (large.h, made by
/// make_large.py, which the compiler is told to include first).
#pragma once

#include "tests/e2e/mpi/programs/check.h"

#ifdef LARGE
typedef MPI_Count Count;         // of elements
typedef MPI_Aint Displacement;   // in a buffer of a v- or w-form, in elements or bytes
typedef MPI_Count ByteDistance;  // in a type
typedef MPI_Aint Unit;           // of displacements in a window
#else
typedef int Count;
typedef int Displacement;
typedef MPI_Aint ByteDistance;
typedef int Unit;
#endif

#define OK(call) CHECK((call) == MPI_SUCCESS)
#define W MPI_COMM_WORLD
#define HAS_MPI_4 (MPI_VERSION >= 4)

extern int me;     ///< rank in MPI_COMM_WORLD: 0 or 1
extern int other;  ///< the other's

void point_to_point(void);
void completion(void);
void collectives(void);
void neighbours(void);
void communicators(void);
void topologies(void);
void groups(void);
void datatypes(void);
void packing(void);
void attributes(void);
void error_handlers(void);
void operations(void);
void infos(void);
void one_sided(void);
void files(const char* folder);
void processes(const char* program);
void removed(void);
void tools(void);
void handles(void);
void sessions(void);
