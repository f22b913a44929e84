#include "tools/assembly.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "writers/assemble/assemble.h"

namespace aon::tools {
namespace {

namespace fs = std::filesystem;

constexpr char kOriginFile[] = "joined-from";
constexpr int kMaxSameNames = 1000;

std::string origin_of(const fs::path& node) {
  std::ifstream file(node / kOriginFile);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Links every file of `from` into `to`, or copies where links are not possible.
void link_files(const fs::path& from, const fs::path& to) {
  fs::create_directory(to);
  fs::permissions(to, fs::perms::owner_all);
  for (const auto& file : fs::directory_iterator(from)) {
    if (!file.is_regular_file()) continue;
    const fs::path target = to / file.path().filename();
    std::error_code error;
    fs::create_hard_link(file.path(), target, error);
    if (error) fs::copy_file(file.path(), target, fs::copy_options::overwrite_existing);
  }
}

/// Puts the node folder `from` into `spool` under its own name, or with "~2", "~3", ... when
/// another folder has it. Does nothing when it is there already.
Status join_node(const fs::path& from, const fs::path& spool) {
  const std::string origin = fs::canonical(from).string();
  for (int number = 1; number < kMaxSameNames; ++number) {
    const std::string suffix = number == 1 ? "" : fmt::format("~{}", number);
    const fs::path target = spool / (from.filename().string() + suffix);
    if (fs::exists(target)) {
      if (origin_of(target) == origin) return {};
      continue;
    }
    const fs::path fresh = spool / fmt::format(".join-{}", from.filename().string());
    fs::remove_all(fresh);
    link_files(from, fresh);
    std::ofstream(fresh / kOriginFile) << origin;
    fs::rename(fresh, target);
    return {};
  }
  return Error{Code::kInvalid, fmt::format("{} has too many nodes of one name", spool.string())};
}

Status join_directories(const std::vector<std::string>& dirs) {
  const fs::path spool = fs::path(dirs.front()) / "spool";
  for (size_t i = 1; i < dirs.size(); ++i) {
    if (fs::equivalent(dirs[i], dirs.front())) continue;
    for (const auto& node : fs::directory_iterator(fs::path(dirs[i]) / "spool")) {
      if (!node.is_directory()) continue;
      if (Status status = join_node(node.path(), spool); !status) return status;
    }
  }
  return {};
}

}  // namespace

Status assemble_job(const FinalizeOptions& options) {
  try {
    if (Status status = join_directories(options.dirs); !status) return status;
  } catch (const fs::filesystem_error& error) {
    return Error{Code::kIo, error.what()};
  }
  writers::AssembleOptions wanted;
  wanted.otf2_locations = static_cast<uint32_t>(options.otf2_location_count);
  wanted.drops_spool = options.drop_spool;
  wanted.is_snapshot = options.snapshot;
  wanted.disk_cap_bytes = options.disk_bytes;
  const Result<writers::AssembleReport> report = writers::assemble(options.dirs.front(), wanted);
  if (!report) return report.error();
  for (const std::string& warning : report->warnings)
    fmt::print(stderr, "aon finalize: {}\n", warning);
  return {};
}

}  // namespace aon::tools
