// NAME@plt of the PLT entries. Every entry is read for the slot it jumps through, and the slot's
// relocation says the name; that holds for the lazy, the non-lazy and the IBT layout (x86-64 psABI,
// "Procedure Linkage Table"), whatever the order of the entries.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "writers/symbols/symbol_table.h"

namespace aon::symbols {

namespace {

constexpr uint8_t kPltRank = 20;
constexpr size_t kMaxEntryBytes = 16;

/// What a relocation says about a slot: a symbol, or the address of an IFUNC's resolver.
struct Slot {
  std::string_view name;
  uint64_t resolver = 0;
};
using Slots = std::unordered_map<uint64_t, Slot>;

void read_relocations(const ElfFile& file, const ElfSection& section, Slots* slots) {
  Elf_Data* data = file.data(section);
  const size_t entry_bytes = gelf_fsize(file.elf(), ELF_T_RELA, 1, EV_CURRENT);
  if (data == nullptr || entry_bytes == 0) return;
  const std::span<const ElfSection> sections = file.sections();
  const uint64_t link = section.header.sh_link;
  Elf_Data* symbols = nullptr;
  const Elf_Data* strings = nullptr;
  if (link != 0 && link <= sections.size()) {
    const ElfSection& table = sections[link - 1];
    symbols = file.data(table);
    const uint64_t names = table.header.sh_link;
    if (names != 0 && names <= sections.size()) strings = file.data(sections[names - 1]);
  }
  const size_t count = std::min<size_t>(data->d_size / entry_bytes, INT32_MAX);
  for (size_t i = 0; i < count; ++i) {
    GElf_Rela entry;
    if (gelf_getrela(data, static_cast<int>(i), &entry) == nullptr) return;
    const uint64_t type = GELF_R_TYPE(entry.r_info);
    if (type == R_X86_64_IRELATIVE) {
      (*slots)[entry.r_offset] = {{}, static_cast<uint64_t>(entry.r_addend)};
    } else if (type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT) {
      GElf_Sym symbol;
      const auto number = static_cast<int>(GELF_R_SYM(entry.r_info));
      if (symbols != nullptr && gelf_getsym(symbols, number, &symbol) != nullptr)
        (*slots)[entry.r_offset] = {elf_string(strings, symbol.st_name), 0};
    }
  }
}

/// Of 8 bytes are those that are bound at the start and have no room for more, as for endbr64.
size_t plt_entry_bytes(const ElfSection& section) {
  constexpr size_t kShortEntryBytes = 8;
  const uint64_t told = section.header.sh_entsize;
  if (told == kShortEntryBytes || told == kMaxEntryBytes) return told;
  return section.name == ".plt.got" ? kShortEntryBytes : kMaxEntryBytes;
}

/// Address of the slot that the entry at `code` jumps through (jmp *disp32(%rip)); 0: none.
uint64_t jump_slot(const uint8_t* code, size_t bytes, uint64_t address) {
  constexpr uint8_t kEndbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
  size_t at = 0;
  if (bytes >= sizeof(kEndbr64) && std::memcmp(code, kEndbr64, sizeof(kEndbr64)) == 0) at = 4;
  if (at < bytes && code[at] == 0xf2) ++at;  // bnd
  if (at + 6 > bytes || code[at] != 0xff || code[at + 1] != 0x25) return 0;
  int32_t distance;
  std::memcpy(&distance, code + at + 2, sizeof(distance));
  return address + at + 6 + static_cast<uint64_t>(static_cast<int64_t>(distance));
}

}  // namespace

void SymbolTable::add_plt(const ElfFile& file) {
  if (file.machine() != EM_X86_64) return;
  Slots slots;
  for (const ElfSection& section : file.sections())
    if (section.header.sh_type == SHT_RELA && (section.header.sh_flags & SHF_ALLOC) != 0)
      read_relocations(file, section, &slots);
  if (slots.empty()) return;
  std::unordered_map<uint64_t, std::string_view> resolvers;
  const bool has_resolvers = std::any_of(
      slots.begin(), slots.end(), [](const auto& slot) { return slot.second.resolver != 0; });
  for (const Symbol& symbol : symbols_) {
    if (!has_resolvers) break;
    std::string_view& best = resolvers[symbol.begin];
    if (best.empty() || symbol.name < best) best = symbol.name;
  }
  for (const ElfSection& section : file.sections()) {
    if (!ElfFile::is_code(section) || section.name.find("plt") == std::string_view::npos) continue;
    const Elf_Data* data = file.data(section);
    if (data == nullptr) continue;
    const auto* code = static_cast<const uint8_t*>(data->d_buf);
    const size_t step = plt_entry_bytes(section);
    for (size_t at = 0; at < data->d_size; at += step) {
      const uint64_t address = section.header.sh_addr + at;
      const size_t bytes = std::min(step, data->d_size - at);
      const auto slot = slots.find(jump_slot(code + at, bytes, address));
      if (slot == slots.end()) continue;
      std::string_view name = slot->second.name;
      if (const auto found = resolvers.find(slot->second.resolver);
          name.empty() && found != resolvers.end())
        name = found->second;
      if (name.empty()) continue;
      made_names_.push_back(std::string(name) + "@plt");
      symbols_.push_back({address, address + bytes, made_names_.back(), kPltRank});
    }
  }
}

}  // namespace aon::symbols
