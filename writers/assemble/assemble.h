/// Job directory -> archive: reads DIR/spool and leaves traces.otf2, traces.def, traces/,
/// profile.h5 and aon.json in DIR. Any number of times, by anybody, also after a crash.
///
///     lease --> leftover ring files into the spool --> model --> events --> ledger
///           --> hidden folder synced --> renamed into DIR, the older result goes
///
/// A reader sees the old archive or the new one; between the two renames the anchor traces.otf2 is
/// missing. Two assemblers of one directory do not work at the same time (lease with heartbeat).
/// Thread: one; the caller's, one that renews the lease, and processes of its own for shares.
/// Cost: about 200 ns per OTF2 event record, below 256 MiB of memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "writers/assemble/assembly_lease.h"
#include "writers/assemble/model.h"
#include "writers/writer.h"

namespace aon::writers {

constexpr uint64_t kLeastSharedRecords = 20'000'000;  ///< about five seconds of one process

struct AssembleOptions {
  uint32_t otf2_locations = kDefaultOtf2Locations;
  bool nccl_as_mpi = false;  ///< in the archive NCCL's operations are MPI's
  bool writes_otf2 = true;
  bool writes_hdf5 = true;
  bool drops_spool = false;              ///< remove DIR/spool after success
  std::function<bool()> may_drop_spool;  ///< asked just before; empty: it may
  symbols::DebugSearch symbol_search;    ///< where names and lines of functions come from
  bool is_snapshot = false;              ///< the job still runs: leave ring files and spool alone
  /// Whose agents ended before their spool was complete, and why it was not brought here, if known.
  std::map<std::string, std::string> lost_nodes;
  uint64_t disk_cap_bytes = 0;  ///< of spool and archive together, per node; 0: as the spool says
  // In shares (shares.h), where one process is enough otherwise:
  uint32_t share_count = 1;                ///< processes of this node, with all groups between them
  std::vector<std::string> waiting_nodes;  ///< whose agents do the shares of their nodes
  uint64_t least_shared_records = kLeastSharedRecords;  ///< fewer are not worth their waiting
};

struct AssembleReport {
  Outcome outcome;
  uint64_t record_count = 0;  ///< counted records read from the spool
  uint64_t lost_count = 0;
  uint64_t archive_bytes = 0;
  double seconds = 0;
  std::vector<std::string> warnings;  ///< one line each, those of failures first
  std::vector<std::string> failures;  ///< of writers: what they make is missing, another try may do
};

/// Assembles the job directory `folder`.
/// Errors: kBusy (another one is at work; the message names it), kNotFound (no spool, nothing
/// recorded), kIo. When a writer fails the others' files are still published, and the report says
/// so; when all fail that is an error and the older result stays.
Result<AssembleReport> assemble(const std::filesystem::path& folder,
                                const AssembleOptions& options = {});

/// The same under a lease of the caller's, who has something to look up or to note while nobody
/// else assembles.
Result<AssembleReport> assemble(const std::filesystem::path& folder, const AssembleOptions& options,
                                AssemblyLease* lease);

/// Does the share of `node` in the assembly of `folder` that another process has planned
/// (shares.h). Nothing when there is none, or none of `node`.
/// Errors: kUnavailable when it is over already, kInvalid where the job looks another here; kIo.
Status join_assembly(const std::filesystem::path& folder, const std::string& node);

}  // namespace aon::writers
