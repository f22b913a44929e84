/// What the ledger says of the provider "mpi" in this process: on, off, or degraded with all that
/// is missing, each reason with its remedy.
///
/// Thread: any; the parts come from one thread at a time (the mutex of state.cpp, or a first
/// overflow).   Cost: a definition; once, and again when something overflows.
#pragma once

#include <cstdint>

namespace aon::mpi {

/// What is missing from the beginning.
struct ProviderNotes {
  bool has_no_fortran;      ///< an INTEGER has more than 4 bytes
  bool has_unnamed_world;   ///< a session does not say whose it is
  bool is_begun_past_us;    ///< MPI runs, and no wrapper of ours has seen it begin
  const char* front_name;   ///< a function that somebody in front of us has; null: none
  uint32_t front_count;     ///< how many
  uint64_t sessions_count;  ///< that are not followed
};
extern ProviderNotes provider_notes;

/// The library is not one of ours: calls are only forwarded.
void tell_unknown_library();

/// Everything there is to say now. `is_end`: counts are whole, and nothing is said when there are
/// none.
void tell_provider(bool is_end);

}  // namespace aon::mpi
