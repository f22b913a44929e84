#include "core/agent/followable.h"

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <functional>
#include <string_view>
#include <utility>

#include "core/base/disable.h"
#include "core/base/file.h"
#include "core/provider/names.h"

namespace aon::agent {
namespace {

/// Those of the node that tell something of each process.
constexpr const char* kFollowers[] = {"perf", "process", "sampling"};

std::string read_link(const std::string& path) {
  char target[PATH_MAX];
  const ssize_t bytes = ::readlink(path.c_str(), target, sizeof(target));
  return bytes > 0 ? std::string(target, static_cast<size_t>(bytes)) : std::string();
}

std::string proc_path(pid_t pid, const char* name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}

/// What the kernel told it at its start; empty where that may not be read.
std::string auxiliary_vector(pid_t pid) {
  const Result<std::string> bytes = read_text_file(proc_path(pid, "auxv"), 4096);
  return bytes ? *bytes : std::string();
}

/// As the kernel told it at its start (AT_SECURE). What may not be read is of another user, or does
/// not want to be looked at; what has no such entry is of another word size.
bool is_privileged(pid_t pid) {
  const std::string bytes = auxiliary_vector(pid);
  for (size_t at = 0; at + sizeof(Elf64_auxv_t) <= bytes.size(); at += sizeof(Elf64_auxv_t)) {
    Elf64_auxv_t entry{};
    std::memcpy(&entry, bytes.data() + at, sizeof(entry));
    if (entry.a_type == AT_SECURE) return entry.a_un.a_val != 0;
  }
  return true;
}

/// As they were at its start: AON is not wanted, or another agent than that of `socket`.
bool is_not_ours(pid_t pid, const std::string& socket) {
  constexpr std::string_view kDisable = "AON_DISABLE=";
  constexpr std::string_view kSocket = "AON_SOCKET=";
  const Result<std::string> text = read_text_file(proc_path(pid, "environ"));
  if (!text) return true;
  for (size_t at = 0; at < text->size();) {
    const std::string_view variable = text->c_str() + at;
    if (variable.starts_with(kDisable) && is_disabled_by(variable.data() + kDisable.size()))
      return true;
    const bool is_told = variable.starts_with(kSocket) && variable.size() > kSocket.size();
    if (is_told && !socket.empty() && variable.substr(kSocket.size()) != socket) return true;
    at += variable.size() + 1;
  }
  return false;
}

/// Of this launch, or of one that the program has begun: it records others.
bool is_of_a_launch(const std::string& program) {
  const std::string name = program.substr(program.rfind('/') + 1);
  return name == "aon-agent" || name == "aon-run" || name == "aon-task";
}

}  // namespace

Following following_of(const Options& options) {
  const provider::Selection selection{options.providers, options.without};
  if (!provider::is_wanted(selection, "mpi")) return Following::kAll;
  const auto is_wanted = [&](const std::string& name) {
    return provider::is_wanted(selection, name);
  };
  const auto is_users = [&](const std::string& name) {
    return name.starts_with('/') && is_wanted(name);
  };
  const bool has_followers =
      std::any_of(std::begin(kFollowers), std::end(kFollowers), is_wanted) ||
      std::any_of(options.providers.begin(), options.providers.end(), is_users);
  return has_followers ? Following::kBusy : Following::kNobody;
}

/// Where its stack begins, which the kernel makes anew, is in there.
uint64_t image_of(pid_t pid) {
  const std::string about = auxiliary_vector(pid);
  return about.empty() ? 0 : std::hash<std::string>()(read_link(proc_path(pid, "exe")) + about);
}

Followable followable_program(pid_t pid, std::span<const std::string> left_alone,
                              const std::string& socket) {
  if (is_privileged(pid) || is_not_ours(pid, socket)) return {};
  std::string program = read_link(proc_path(pid, "exe"));
  if (is_of_a_launch(program)) return {};
  const bool is_left_alone =
      std::find(left_alone.begin(), left_alone.end(), program) != left_alone.end();
  return {std::move(program), is_left_alone};
}

bool shares_pid_namespace(pid_t pid) {
  const std::string own = read_link("/proc/self/ns/pid");
  return !own.empty() && read_link(proc_path(pid, "ns/pid")) == own;
}

}  // namespace aon::agent
