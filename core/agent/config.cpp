#include "core/agent/config.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <filesystem>

#include "core/agent/memory_limit.h"
#include "core/base/file.h"
#include "core/base/lease.h"
#include "core/base/owner.h"
#include "core/clock/snapshot.h"
#include "core/cluster/meeting.h"
#include "core/provider/names.h"

namespace aon::agent {
namespace {

constexpr uint64_t kMiB = 1u << 20;
constexpr uint64_t kLeastNodeBytes = 16 * kMiB;
constexpr uint64_t kMostNodeBytes = 1024 * kMiB;
constexpr uint64_t kFewestOpenFiles = 4;
constexpr uint64_t kMostOpenFiles = 16384;

bool take_value(std::string_view argument, std::string_view name, std::string* value) {
  if (!argument.starts_with(name)) return false;
  *value = argument.substr(name.size());
  return true;
}

std::string path_of_socket(int fd) {
  sockaddr_un address{};
  socklen_t bytes = sizeof(address);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return "";
  return address.sun_family == AF_UNIX ? std::string(address.sun_path) : std::string();
}

void fill_paths(Config* config, const std::filesystem::path& program_folder) {
  const Options& options = config->arguments.options;
  config->job_folder = options.output_dir;
  const std::string spool = options.spool_dir.empty()
                                ? options.output_dir + "/spool"
                                : options.spool_dir + "/aon-" + config->arguments.launch_id;
  config->folder = spool + "/" + config->node;
  // Where nodes share the job directory they meet there.
  if (cluster::is_on_disk_of_node(config->job_folder)) config->meeting = options.rendezvous;
  config->socket_path = path_of_socket(config->arguments.listen_fd);
  config->runtime_folder = std::filesystem::path(config->socket_path).parent_path();
  if (config->provider_folder.empty()) {
    config->provider_folder =
        provider::provider_folder((program_folder / "../lib").lexically_normal().string());
  }
}

/// A quarter of what this process may open, which its start raises to the hard limit: the rest is
/// for sockets, and for the rings and pidfds of processes.
uint32_t open_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kFewestOpenFiles;
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(limit.rlim_max / 4, kFewestOpenFiles, kMostOpenFiles));
}

void fill_limits(Config* config) {
  const Options& options = config->arguments.options;
  const uint64_t node_bytes =
      options.node_memory_bytes != 0
          ? options.node_memory_bytes
          : std::clamp(memory_limit_bytes() / 100, kLeastNodeBytes, kMostNodeBytes);
  // A memfd is a file: the limit on file sizes holds for it (state.h, too), and for the segments.
  rlimit file_limit{};
  ::getrlimit(RLIMIT_FSIZE, &file_limit);
  const uint64_t largest_file = std::max<uint64_t>(file_limit.rlim_max, kMiB);
  config->file_limit_bytes = largest_file;
  config->staging_bytes = std::clamp(std::bit_floor(node_bytes / 16), 4 * kMiB, 64 * kMiB);
  config->staging_bytes = std::min(config->staging_bytes, std::bit_floor(largest_file / 2));
  config->drain.ring_bytes = std::min(options.memory_bytes, largest_file / 2);
  config->drain.node_bytes = node_bytes;
  config->drain.hang_ns = options.hang_s * 1'000'000'000u;
  config->drain.clock_is_tsc = clock::choose_tick_source() == clock::TickSource::kTsc;
  // Half of the cap is for the spool, the rest for the archive that is made from it. An eighth of
  // the half is for definitions; one sixteenth is room for what is written between two checks.
  const uint64_t spool_bytes = options.disk_bytes / 2;
  EncoderSettings& encoder = config->encoder;
  encoder.host = config->node;
  encoder.launch_id = config->arguments.launch_id;
  encoder.definitions_bytes = spool_bytes / 8;
  encoder.limits.total_bytes = spool_bytes - spool_bytes / 8 - spool_bytes / 16;
  encoder.limits.segment_bytes =
      std::min(std::max<uint64_t>(spool_bytes / 16, 16384), largest_file / 2);
  encoder.limits.chatty_bytes = spool_bytes / 64;
  encoder.limits.kept_bytes = config->staging_bytes / 8;
  encoder.limits.open_files = open_file_limit();
  encoder.node.format = spool::kSpoolFormat;
  encoder.node.clock_is_tsc = config->drain.clock_is_tsc ? 1 : 0;
  encoder.node.budget_millipercent = static_cast<uint64_t>(options.budget_percent * 1000);
  encoder.node.disk_cap_bytes = options.disk_bytes;
}

/// Opens a folder below one that others may write: they may have made it, or a link, before us.
Result<UniqueFd> open_private(const std::string& path) {
  Result<UniqueFd> fd = open_file(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (fd && !is_of_this_user(fd->get()))
    return Error{Code::kUnavailable, path + " is another user's; choose another --spool-dir"};
  if (fd) close_to_others(fd->get());
  return fd;
}

}  // namespace

Result<Config> read_config(std::span<const char* const> arguments) {
  Config config;
  std::filesystem::path program_folder;
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) program_folder = self.parent_path();
  config.node = local_host_name();
  config.finalize_program = (program_folder / "aon").string();
  std::vector<const char*> shared;
  for (const char* argument : arguments) {
    if (!take_value(argument, "--node=", &config.node) &&
        !take_value(argument, "--finalize-program=", &config.finalize_program) &&
        !take_value(argument, "--provider-folder=", &config.provider_folder))
      shared.push_back(argument);
  }
  auto read = read_agent_arguments(shared);
  if (!read) return read.error();
  config.arguments = std::move(*read);
  if (config.node.empty() || config.node.find('/') != std::string::npos)
    return Error{Code::kInvalid, "--node needs a name without '/'"};
  fill_paths(&config, program_folder);
  fill_limits(&config);
  return config;
}

Result<UniqueFd> open_spool_folder(const Config& config) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::create_directories(config.folder, error) && error) {
    // A process of the job has just made it (runtime/output_folder.cpp) under a narrow umask.
    fs::permissions(config.job_folder + "/spool", fs::perms::owner_all, fs::perm_options::add,
                    error);
    fs::create_directories(config.folder, error);
  }
  if (error) return errno_error("cannot create", config.folder, error.value());
  if (!config.arguments.options.spool_dir.empty()) {
    const std::string launch = std::filesystem::path(config.folder).parent_path();
    if (const Result<UniqueFd> fd = open_private(launch); !fd) return fd.error();
  }
  Result<UniqueFd> folder = open_private(config.folder);
  if (!folder) return folder.error();
  if (!config.arguments.options.spool_dir.empty()) {
    const std::string place = config.job_folder + "/spool";
    std::filesystem::create_directories(place, error);
    // Where `aon finalize` looks; an existing link is the same one.
    if (::symlink(config.folder.c_str(), (place + "/" + config.node).c_str()) != 0 &&
        errno != EEXIST)
      return errno_error("cannot link", place + "/" + config.node, errno);
  }
  return folder;
}

std::optional<std::string> moved_folder(const Config& config, int spool_folder) {
  struct stat opened {};
  struct stat named {};
  if (::fstat(spool_folder, &opened) != 0 || opened.st_nlink == 0) return std::nullopt;
  const bool is_there = ::stat(config.folder.c_str(), &named) == 0;
  if (!is_there && errno != ENOENT && errno != ENOTDIR) return std::nullopt;  // not known
  if (is_there && named.st_ino == opened.st_ino && named.st_dev == opened.st_dev)
    return std::nullopt;
  std::error_code error;
  const std::filesystem::path link = "/proc/self/fd/" + std::to_string(spool_folder);
  std::string folder = std::filesystem::read_symlink(link, error).string();
  const std::string below = "/spool/" + config.node;
  if (error || !folder.ends_with(below)) return std::nullopt;
  folder.resize(folder.size() - below.size());
  if (folder == config.job_folder) return std::nullopt;
  return folder;
}

}  // namespace aon::agent
