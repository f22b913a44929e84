#include "core/agent/stack_walker.h"

#include <aon/proc_maps.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "core/base/file.h"
#include "core/base/log.h"

namespace aon::agent {
namespace {

constexpr uint64_t kReadAgainNs = 1'000'000'000;
constexpr size_t kMaxMapsBytes = 16u << 20;
constexpr size_t kMaxTold = 32;  ///< lines of the log

unwind::Registers registers_of(const aon_stack_copy& copy) {
  unwind::Registers registers;
  registers.set(unwind::kBx, copy.bx);
  registers.set(unwind::kBp, copy.bp);
  registers.set(unwind::kSp, copy.sp);
  registers.set(unwind::kR12, copy.r12);
  registers.set(unwind::kR13, copy.r13);
  registers.set(unwind::kR14, copy.r14);
  registers.set(unwind::kR15, copy.r15);
  registers.set(unwind::kIp, copy.ip);
  return registers;
}

std::string mount_namespace(const std::string& folder) {
  std::error_code ignored;
  return std::filesystem::read_symlink(folder + "/ns/mnt", ignored).string();
}

}  // namespace

std::vector<unwind::Mapping> parse_executable_maps(const std::string& text,
                                                   const std::string& root) {
  std::vector<unwind::Mapping> mappings;
  std::string_view rest = text;
  for (ProcMapping line; take_mapping(&rest, &line);) {
    if (!line.is_executable()) continue;
    unwind::Mapping mapping;
    mapping.begin = line.start;
    mapping.end = line.end;
    mapping.file_offset = line.file_offset;
    if (line.path.starts_with('/')) mapping.path = root + std::string(line.path);
    mappings.push_back(std::move(mapping));
  }
  return mappings;
}

std::vector<unwind::Mapping> executable_mappings(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  const auto text = read_text_file(folder + "/maps", kMaxMapsBytes);
  if (!text || text->empty()) return {};
  // Files of our own namespace are opened once for all processes.
  const bool is_ours = mount_namespace(folder) == mount_namespace("/proc/self");
  auto mappings = parse_executable_maps(*text, is_ours ? "" : folder + "/root");
  for (unwind::Mapping& mapping : mappings) {
    if (!mapping.path.empty()) mapping.file = unwind::file_id_of(mapping.path);
  }
  return mappings;
}

void StackWalker::read_mappings(Watched* watched, uint64_t now_ns) {
  watched->read_ns = std::max<uint64_t>(now_ns, 1);
  std::vector<unwind::Mapping> mappings = executable_mappings(watched->pid);
  if (!mappings.empty()) watched->mappings = std::move(mappings);  // else what was known stays
}

std::string StackWalker::place_of(uint32_t process, uint64_t address) const {
  const auto found = processes_.find(process);
  char text[32];
  if (found != processes_.end()) {
    const std::string root = "/proc/" + std::to_string(found->second.pid) + "/root";
    for (const unwind::Mapping& mapping : found->second.mappings) {
      const bool is_here = address >= mapping.begin && address < mapping.end;
      if (!is_here || mapping.path.empty()) continue;
      const uint64_t offset = address - mapping.begin + mapping.file_offset;
      snprintf(text, sizeof text, "+0x%llx", static_cast<unsigned long long>(offset));
      return mapping.path.substr(mapping.path.starts_with(root) ? root.size() : 0) + text;
    }
  }
  snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
  return text;
}

void StackWalker::tell_failures() {
  const std::vector<std::string>& failures = unwinder_.failures();
  if (failures.size() < seen_failures_) seen_failures_ = 0;  // it has forgotten them
  for (; seen_failures_ < failures.size() && told_failures_ < kMaxTold; ++seen_failures_) {
    const bool is_last = ++told_failures_ == kMaxTold;
    AON_LOG_WARNING("stacks: %s; its code is passed by frame pointers%s",
                    failures[seen_failures_].c_str(), is_last ? ", no more such are told" : "");
  }
}

uint32_t StackWalker::unwind(uint32_t process, const aon_stack_copy& copy,
                             std::span<uint64_t> frames, uint64_t now_ns) {
  const auto found = processes_.find(process);
  if (found == processes_.end()) return 0;
  Watched& watched = found->second;
  if (watched.read_ns == 0) read_mappings(&watched, now_ns);
  const unwind::StackCopy stack{copy.sp, static_cast<const uint8_t*>(copy.bytes), copy.byte_count};
  const unwind::Registers registers = registers_of(copy);
  unwind::Chain chain = unwinder_.unwind(registers, stack, watched.mappings, frames.size());
  if (chain.end == unwind::End::kNoModule && now_ns - watched.read_ns > kReadAgainNs) {
    read_mappings(&watched, now_ns);
    chain = unwinder_.unwind(registers, stack, watched.mappings, frames.size());
  }
  tell_failures();
  const size_t count = std::min(chain.entries.size(), frames.size());
  for (size_t i = 0; i < count; ++i) {
    const unwind::ChainEntry& entry = chain.entries[i];
    // Behind a signal handler the interrupted instruction itself follows.
    frames[i] = entry.address + (i > 0 && !entry.is_return_address ? 1 : 0);
  }
  return static_cast<uint32_t>(count);
}

}  // namespace aon::agent
