#include "core/unwind/call_frames.h"

#include <dwarf.h>

#include <cstdlib>

namespace aon::unwind {

namespace {

struct FreeFrame {
  void operator()(Dwarf_Frame* frame) const { std::free(frame); }
};

Rule read_rule(Dwarf_Frame* frame, int number) {
  Dwarf_Op memory[3];
  Dwarf_Op* operations = nullptr;
  size_t count = 0;
  if (dwarf_frame_register(frame, number, memory, &operations, &count) != 0) return {};
  if (count == 0) return {operations == nullptr ? Rule::Kind::kSame : Rule::Kind::kUndefined, {}};
  const uint8_t last = operations[count - 1].atom;
  const bool is_register = (last >= DW_OP_reg0 && last <= DW_OP_reg31) || last == DW_OP_regx;
  return {is_register || last == DW_OP_stack_value ? Rule::Kind::kValue : Rule::Kind::kSaved,
          {operations, operations + count}};
}

}  // namespace

Result<CallFrames> CallFrames::open(const std::string& path, const std::string& build_id,
                                    uint64_t max_bytes) {
  Result<ElfFile> file = ElfFile::open(path, ElfFile::Access::kRead);
  if (!file) return file.error();
  if (!build_id.empty() && file->build_id() != build_id)
    return Error{Code::kInvalid, path + ": build-id differs from the file that ran"};
  if (file->machine() != EM_X86_64)
    return Error{Code::kInvalid, path + ": unwinding is for x86-64"};
  Result<FrameImage> image = FrameImage::copy(*file, max_bytes);
  if (!image) return image.error();
  CallFrames frames;
  frames.file_ = std::make_unique<ElfFile>(std::move(*file));
  frames.image_ = std::make_unique<FrameImage>(std::move(*image));
  frames.cfi_.reset(dwarf_getcfi_elf(frames.image_->elf()));
  if (!frames.cfi_) return Error{Code::kDamaged, path + ": its .eh_frame cannot be read"};
  return frames;
}

const FrameRules* CallFrames::find(uint64_t file_offset) {
  const std::optional<uint64_t> address = file_->address_of(file_offset);
  if (!address) return nullptr;
  auto next = known_.upper_bound(*address);
  if (next != known_.begin()) {
    const FrameRules& rules = std::prev(next)->second;
    if (*address < rules.end) return rules.cfa.empty() ? nullptr : &rules;
  }
  FrameRules rules;
  if (!read_rules(*address, &rules)) {
    rules = {};
    rules.begin = *address;
    rules.end = *address + 1;
  }
  const auto put = known_.insert_or_assign(rules.begin, std::move(rules)).first;
  return put->second.cfa.empty() ? nullptr : &put->second;
}

bool CallFrames::read_rules(uint64_t address, FrameRules* rules) {
  Dwarf_Frame* raw = nullptr;
  if (dwarf_cfi_addrframe(cfi_.get(), address, &raw) != 0) return false;
  const std::unique_ptr<Dwarf_Frame, FreeFrame> frame(raw);
  Dwarf_Op* operations = nullptr;
  size_t count = 0;
  if (dwarf_frame_info(raw, &rules->begin, &rules->end, &rules->is_signal_frame) != kIp ||
      address < rules->begin || address >= rules->end ||
      dwarf_frame_cfa(raw, &operations, &count) != 0 || count == 0)
    return false;
  rules->cfa.assign(operations, operations + count);
  for (size_t i = 0; i < kFollowed.size(); ++i) rules->registers[i] = read_rule(raw, kFollowed[i]);
  return true;
}

}  // namespace aon::unwind
