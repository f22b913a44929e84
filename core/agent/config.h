/// What aon-agent is told: aon-run's options (core/base/options.h) and a few of its own.
/// Thread: a value.   Errors: a message that names the argument.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/agent/drainer.h"
#include "core/agent/encoder.h"
#include "core/base/options.h"
#include "core/base/result.h"

namespace aon::agent {

struct Config {
  AgentArguments arguments;
  std::string node;              ///< folder name below spool/
  std::string job_folder;        ///< DIR
  std::string folder;            ///< DIR/spool/NODE
  std::string meeting;           ///< cluster/meeting.h; empty: DIR is where agents meet
  std::string socket_path;       ///< of the listener; empty unknown
  std::string runtime_folder;    ///< where that is: 0700, the user's; empty unknown
  std::string allowed_cpus;      ///< by the control group, as in /proc
  std::string finalize_program;  ///< `aon`; empty: none
  std::string provider_folder;   ///< installed providers
  std::string topology_problem;  ///< why it is not the one that was asked for; empty: it is
  uint64_t file_limit_bytes = 0;
  uint64_t staging_bytes = 0;
  DrainSettings drain{};
  EncoderSettings encoder;  ///< but its folder, which a worker knows
};

/// Reads the command line. Own arguments besides aon-run's: --node=NAME, --finalize-program=PATH
/// ("" none), --provider-folder=DIR.
Result<Config> read_config(std::span<const char* const> arguments);

/// Makes DIR/spool/NODE (0700) and opens it.   Errors: kIo, with the folder.
Result<UniqueFd> open_spool_folder(const Config& config);

/// Where DIR is now, when it was moved since `spool_folder` was opened; nullopt: it was not, or was
/// removed, or the spool is elsewhere (--spool-dir).
std::optional<std::string> moved_folder(const Config& config, int spool_folder);

}  // namespace aon::agent
