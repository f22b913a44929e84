/// Programs of the launch whose calls cannot be seen: linked statically, so that no library is
/// loaded into them, or with MPI inside, so that its calls never leave the program, or with an MPI
/// tool inside, which takes the calls before any library can. The ledger says so (provider "mpi" of
/// the node): an empty profile must not read as a program without MPI. Of those that computed, and
/// that the agent has followed from outside since, each process says it, and what it has all the
/// same.
///
/// Thread: one.   Cost: a few ms per distinct program that never said Hello; none for the others.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/agent/inbox.h"
#include "core/agent/state.h"
#include "core/base/options.h"

namespace aon::agent {

enum class Linkage : uint32_t {
  kUnknown = 0,  ///< no ELF file (a script), or it cannot be read
  kDynamic,      ///< preloaded libraries see its MPI calls
  kStatic,       ///< no program interpreter: nothing is preloaded
  kOwnMpi,       ///< defines PMPI_Init itself: it was linked with a static MPI library
  kOwnWrappers,  ///< defines MPI_Init alone: a tool that calls PMPI_Init
};

/// What the symbol table and the program headers of `path` say; a stripped program with MPI inside
/// looks like any dynamic one.
Linkage linkage_of(const std::string& path);

class UnseenPrograms {
 public:
  /// `options` must outlive it.
  explicit UnseenPrograms(const Options& options);

  bool wants_mpi() const { return wants_mpi_; }
  /// Of a process that has ended and never said Hello, where that cost it something: providers
  /// "mpi" and "recording", and "counters" where events were chosen that threads read at their
  /// calls. `mpi_library`: of loaded_mpi.h.
  void report_process(const ProcessCell& cell, const std::string& mpi_library, Inbox* inbox);
  /// Of one that has said Hello, but nothing of MPI, which it has loaded. What it says later on
  /// counts.
  static void report_loaded(uint32_t process, const std::string& mpi_library, Inbox* inbox);
  /// Where MPI calls are wanted: the node's provider "mpi" when a registered program never said
  /// Hello for such a reason.
  void report(const State& state, Inbox* inbox);

 private:
  Linkage linkage_of_known(const std::string& path);
  void report_mpi(const ProcessCell& cell, const std::string& mpi_library, Inbox* inbox);

  const Options& options_;
  bool wants_mpi_;
  std::map<std::string, Linkage> known_;  ///< by path
};

}  // namespace aon::agent
