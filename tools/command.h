/// The subcommands of `aon` and what they share. Each is one function that parses nothing: main.cpp
/// owns the command line.
///
/// | exit | meaning                                                      |
/// |------|--------------------------------------------------------------|
/// | 0    | done                                                         |
/// | 1    | failed, also in part; one line on stderr says why            |
/// | 2    | wrong use                                                    |
/// | 3    | the job is live, or somebody else is assembling it: see line |
/// | 4    | diff --limit: slower than that                               |
/// | 5    | diff --limit: the interval holds the limit: undecided        |
/// | 6    | finalize, to the agent: failed in part, the rest is written  |
///
/// Thread: one per command.   Cost: offline; nothing here runs beside the application but
/// finalize, which the agent starts when the job is over.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "writers/symbols/debug_search.h"

namespace aon::tools {

constexpr int kExitDone = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUse = 2;
constexpr int kExitLive = 3;
constexpr int kExitSlower = 4;
constexpr int kExitUndecided = 5;
constexpr int kExitInPart = 6;

struct InfoOptions {
  std::string dir;
  bool as_json = false;
};
/// Prints what DIR holds: the ledger for people, or the ledger itself.
int info(const InfoOptions& options);

struct FinalizeOptions {
  std::vector<std::string> dirs;  ///< the archive is written into the first one
  bool snapshot = false;          ///< a live job: write what is there now
  bool from_agent = false;        ///< the agent that started this holds its own lease
  bool drop_spool = false;
  symbols::DebugSearch symbol_search;
  bool is_quiet = false;
  uint64_t otf2_location_count = 4096;
  bool nccl_as_mpi = false;
  uint64_t disk_bytes = 0;  ///< of spool and archive together; 0: no limit
  bool if_needed = false;   ///< not where the archive was begun after the last byte of the spool
  uint32_t jobs = 1;        ///< processes; 0: one per core
  bool is_share = false;    ///< only the share of `node` in an assembly that another one makes
  std::string node;         ///< of the agent that started this, and has marked it as done
  uint64_t least_shared_records = 0;  ///< 0: the default
};
/// Writes the archive of a job from its spool.
int finalize(const FinalizeOptions& options);

struct HangOptions {
  std::string dir;
  std::string ras;  ///< address of NCCL's RAS service; empty: where NCCL has it; "off": not asked
  symbols::DebugSearch symbol_search;
};
/// Says which calls of a job do not return and who did not arrive, of a live job too.
int hang(const HangOptions& options);

struct LevelOptions {
  std::string dir;
  std::string level;     ///< empty: tell what is in force
  uint32_t wait_s = 10;  ///< for answers
};
/// Says which level NCCL is asked for in a job, or asks the agents of a live one for another.
int level(const LevelOptions& options);

struct AvoidOptions {
  std::vector<std::string> remove;  ///< programs to record again
  std::string add;                  ///< program to leave alone
  std::string place;                ///< where it died
};
/// Shows or changes the list of programs that this user's AON leaves alone.
int avoid(const AvoidOptions& options);

struct ExportOptions {
  std::string dir;
  std::string slurm_hdf5;  ///< file to write
  std::string folded;      ///< file to write; "-": standard output
  bool by_rank = false;    ///< of folded stacks
};
/// Writes another format.
int export_job(const ExportOptions& options);

struct DiffOptions {
  std::vector<std::string> base;  ///< job directories, at least one of each
  std::vector<std::string> now;
  std::optional<double> limit_percent;  ///< slower by more is kExitSlower
  bool as_json = false;
};
/// Says what is slower, faster or otherwise in one set of runs than in another, and how sure it is.
int diff(const DiffOptions& options);

/// Says what this machine allows, and how to allow the rest.
int doctor(bool as_json);

/// Prints "aon COMMAND: text" on stderr and returns `exit_code`.
int fail(const std::string& command, const std::string& text, int exit_code = kExitFailed);

}  // namespace aon::tools
