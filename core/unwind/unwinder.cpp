#include "core/unwind/unwinder.h"

#include <sys/stat.h>

#include <algorithm>

#include "core/unwind/expression.h"

namespace aon::unwind {

namespace {

/// More files than this are forgotten at once: a process in a container has paths of its own, and
/// short programs come by the thousand.
constexpr size_t kMaxModules = 256;

/// What one step up found.
struct Step {
  Registers caller;
  std::optional<End> end;
};

/// The caller's value by `rule`.
std::optional<uint64_t> apply(const Rule& rule, int number, const Registers& registers,
                              const StackCopy& stack, uint64_t cfa) {
  if (rule.kind == Rule::Kind::kUndefined) return std::nullopt;
  // The psABI: a caller's stack pointer is the CFA unless a rule says something else.
  if (rule.kind == Rule::Kind::kSame) return number == kSp ? cfa : registers.get(number);
  const auto value = evaluate(rule.operations, registers, stack, cfa);
  return rule.kind == Rule::Kind::kSaved && value ? stack.read(*value) : value;
}

Step step_by_rules(const FrameRules& rules, const Registers& registers, const StackCopy& stack) {
  Step step;
  const auto cfa = evaluate(rules.cfa, registers, stack, std::nullopt);
  if (!cfa) {
    step.end = End::kStackEnds;
    return step;
  }
  for (size_t i = 0; i < kFollowed.size(); ++i) {
    const int number = kFollowed[i];
    const Rule& rule = rules.registers[i];
    if (number == kIp && rule.kind == Rule::Kind::kUndefined) step.end = End::kOutermost;
    const bool is_cfa = number == kSp && rule.kind == Rule::Kind::kUndefined;
    step.caller.set(number, is_cfa ? cfa : apply(rule, number, registers, stack, *cfa));
  }
  if (!step.end && !step.caller.get(kIp)) step.end = End::kStackEnds;
  return step;
}

/// push %rbp; mov %rsp,%rbp: the caller's frame pointer and the return address lie at it.
Step step_by_frame_pointer(const Registers& registers, const StackCopy& stack) {
  Step step;
  const auto bp = registers.get(kBp), sp = registers.get(kSp);
  constexpr uint64_t kWord = sizeof(uint64_t);
  if (!bp || !sp || *bp < *sp || *bp % kWord != 0 || !stack.read(*bp + kWord)) {
    step.end = End::kNoRules;
    return step;
  }
  step.caller.set(kBp, stack.read(*bp));
  step.caller.set(kIp, stack.read(*bp + kWord));
  step.caller.set(kSp, *bp + 2 * kWord);
  return step;
}

}  // namespace

FileId file_id_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return {};
  return {status.st_dev, status.st_ino, static_cast<uint64_t>(status.st_size),
          int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

Chain Unwinder::unwind(Registers registers, const StackCopy& stack,
                       std::span<const Mapping> mappings, size_t max_frames) {
  Chain chain;
  bool is_return_address = false;
  while (chain.entries.size() < max_frames) {
    const auto ip = registers.get(kIp), sp = registers.get(kSp);
    if (!ip || !sp || *ip == 0) {
      chain.end = ip && *ip == 0 ? End::kOutermost : End::kStackEnds;
      return chain;
    }
    bool is_mapped = false;
    const FrameRules* rules = rules_at(is_return_address ? *ip - 1 : *ip, mappings, &is_mapped);
    if (!is_mapped && is_return_address) {
      chain.end = End::kNoModule;  // no caller lies there: it would be a wrong frame
      return chain;
    }
    chain.entries.push_back({*ip, is_return_address});
    const Step step = rules != nullptr ? step_by_rules(*rules, registers, stack)
                                       : step_by_frame_pointer(registers, stack);
    if (step.end) {
      chain.end = !is_mapped && *step.end == End::kNoRules ? End::kNoModule : *step.end;
      return chain;
    }
    const auto next_sp = step.caller.get(kSp);
    if (!next_sp || *next_sp <= *sp) {
      chain.end = End::kNoProgress;
      return chain;
    }
    is_return_address = rules == nullptr || !rules->is_signal_frame;
    registers = step.caller;
  }
  return chain;
}

const FrameRules* Unwinder::rules_at(uint64_t address, std::span<const Mapping> mappings,
                                     bool* is_mapped) {
  const auto next =
      std::upper_bound(mappings.begin(), mappings.end(), address,
                       [](uint64_t a, const Mapping& mapping) { return a < mapping.begin; });
  *is_mapped = next != mappings.begin() && address < (next - 1)->end;
  if (!*is_mapped) return nullptr;
  const Mapping& mapping = *(next - 1);
  CallFrames* frames = module_of(mapping);
  if (frames == nullptr) return nullptr;
  return find_rules(frames, address - mapping.begin + mapping.file_offset);
}

const FrameRules* Unwinder::find_rules(CallFrames* frames, uint64_t file_offset) {
  if (known_count_ >= kMaxKnown) {
    for (auto& [key, module] : modules_) {
      if (module) module->forget();
    }
    known_count_ = 0;
  }
  const size_t before = frames->known_count();
  const FrameRules* rules = frames->find(file_offset);
  known_count_ += frames->known_count() - before;
  return rules;
}

size_t Unwinder::known_count() const {
  size_t count = 0;
  for (const auto& [key, module] : modules_) count += module ? module->known_count() : 0;
  return count;
}

CallFrames* Unwinder::module_of(const Mapping& mapping) {
  if (mapping.path.empty()) return nullptr;
  const ModuleKey key{mapping.path, mapping.build_id, mapping.file};
  if (modules_.size() >= kMaxModules && modules_.count(key) == 0) {
    modules_.clear();
    failures_.clear();
    known_count_ = 0;
    copied_bytes_ = 0;
  }
  const auto [module, is_new] = modules_.try_emplace(key);
  if (is_new) {
    Result<CallFrames> opened =
        CallFrames::open(mapping.path, mapping.build_id, kMaxCopiedBytes - copied_bytes_);
    // Asked behind the opening: what comes into its place from here on does no harm.
    const bool is_it = mapping.file == FileId{} || file_id_of(mapping.path) == mapping.file;
    if (opened && is_it) {
      module->second = std::move(*opened);
      copied_bytes_ += module->second->copied_bytes();
    } else {
      failures_.push_back(opened ? mapping.path + ": was replaced" : opened.error().message);
    }
  }
  return module->second ? &*module->second : nullptr;
}

}  // namespace aon::unwind
