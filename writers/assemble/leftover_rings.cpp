#include "writers/assemble/leftover_rings.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <system_error>

#include "core/base/file.h"
#include "core/base/name_hash.h"
#include "core/ring/memory.h"

namespace aon::writers {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxLaunchBytes = 4096;

/// By its own name, whatever the caller calls it: ".", or a link.
fs::path real_folder(const fs::path& folder) {
  std::error_code error;
  fs::path real = fs::canonical(folder, error);
  return error ? folder : real;
}

/// Mark of the launch that `folder` belongs to; 0 where no launch is named.
uint64_t mark_of_folder(const fs::path& folder) {
  const Result<std::string> text = read_text_file((folder / ".launch").string(), kMaxLaunchBytes);
  if (!text || text->empty()) return 0;
  return strtoull(name_hash(*text).c_str(), nullptr, 16);
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

/// DIR of DIR.N; empty where `folder` has no such name.
fs::path base_of(const fs::path& folder) {
  const std::string name = folder.filename().string();
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0 || !is_number(name.substr(dot + 1))) return {};
  return folder.parent_path() / name.substr(0, dot);
}

/// True for a folder, no link, that only the owner of `other` may write.
bool is_as_private_as(const fs::path& folder, const fs::path& other) {
  struct stat one {};
  struct stat two {};
  return lstat(folder.c_str(), &one) == 0 && stat(other.c_str(), &two) == 0 &&
         S_ISDIR(one.st_mode) && one.st_uid == two.st_uid &&
         (one.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/// Folders DIR.N beside `folder` that can still take records, by the marks of their launches.
std::map<uint64_t, fs::path> launches_beside(const fs::path& folder) {
  std::map<uint64_t, fs::path> launches;
  std::error_code error;
  const fs::path parent = folder.has_parent_path() ? folder.parent_path() : fs::path(".");
  const std::string start = folder.filename().string() + ".";
  for (fs::directory_iterator at(parent, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.rfind(start, 0) != 0 || !is_number(name.substr(start.size()))) continue;
    if (!is_as_private_as(at->path(), folder) || !fs::exists(at->path() / "spool", error)) continue;
    if (const uint64_t mark = mark_of_folder(at->path()); mark != 0)
      launches.emplace(mark, folder.parent_path() / name);
  }
  return launches;
}

std::vector<fs::path> ring_files(const fs::path& folder) {
  std::vector<fs::path> rings;
  std::error_code error;
  for (const fs::directory_entry& node : fs::directory_iterator(folder / "spool", error)) {
    std::error_code ignored;
    for (const fs::directory_entry& file : fs::directory_iterator(node.path(), ignored)) {
      const std::string name = file.path().filename().string();
      if (name.rfind("fallback-", 0) == 0 && file.path().extension() == ".ring")
        rings.push_back(file.path());
    }
  }
  return rings;
}

}  // namespace

LeftoverRings find_leftover_rings(const fs::path& asked_for) {
  const fs::path folder = real_folder(asked_for);
  const uint64_t own_mark = mark_of_folder(folder);
  LeftoverRings rings;
  std::map<uint64_t, fs::path> beside;
  bool has_looked = false;
  for (fs::path& file : ring_files(folder)) {
    const uint64_t mark = ring::read_launch_mark(file.string());
    if (mark != 0 && mark != own_mark && !has_looked) {
      beside = launches_beside(folder);
      has_looked = true;
    }
    const auto owner = mark == own_mark ? beside.end() : beside.find(mark);
    if (mark == 0 || mark == own_mark || (own_mark == 0 && owner == beside.end())) {
      rings.own.push_back(std::move(file));
    } else {
      rings.strays.push_back({std::move(file), owner == beside.end() ? "" : owner->second});
    }
  }
  const fs::path base = base_of(folder);
  if (own_mark == 0 || base.empty() || !is_as_private_as(base, folder)) return rings;
  for (fs::path& file : ring_files(base)) {
    if (ring::read_launch_mark(file.string()) == own_mark) rings.own.push_back(std::move(file));
  }
  return rings;
}

std::string describe(const StrayRing& stray) {
  const std::string text = stray.file.string() + ": of another launch, whose agent did not take it";
  if (!stray.launch.empty()) return text + "; run: aon finalize " + stray.launch.string();
  const std::string node = stray.file.parent_path().filename().string();
  return text + "; move it to NEW/spool/" + node +
         "/, NEW being a new folder, and run: aon finalize NEW";
}

}  // namespace aon::writers
