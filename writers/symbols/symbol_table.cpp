#include "writers/symbols/symbol_table.h"

#include <algorithm>
#include <tuple>

namespace aon::symbols {

namespace {

/// Smaller is better; 255: not a name of code.
uint8_t rank_of(const GElf_Sym& symbol) {
  constexpr uint8_t kRefused = 255;
  if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS) return kRefused;
  uint8_t rank = 0;
  switch (GELF_ST_TYPE(symbol.st_info)) {
    case STT_FUNC:
    case STT_GNU_IFUNC:
      break;
    case STT_NOTYPE:
      rank = 10;
      break;
    default:
      return kRefused;
  }
  switch (GELF_ST_BIND(symbol.st_info)) {
    case STB_GLOBAL:
    case STB_GNU_UNIQUE:
      return rank;
    case STB_WEAK:
      return rank + 1;
    default:
      return rank + 2;
  }
}

/// Without the version that old linkers write into .symtab: memcpy@@GLIBC_2.14.
std::string_view without_version(std::string_view name) {
  const size_t at = name.find('@');
  return at == 0 || at == std::string_view::npos ? name : name.substr(0, at);
}

/// Labels that mark code and data for a disassembler ($x, $d) or lie inside a function (.L1).
bool is_marker(std::string_view name) {
  return name.empty() || name.front() == '$' || name.substr(0, 2) == ".L";
}

}  // namespace

void SymbolTable::add(const ElfFile& file) {
  for (const ElfSection& section : file.sections()) {
    const uint64_t begin = section.header.sh_addr;
    const uint64_t end = begin + section.header.sh_size;
    if (ElfFile::is_code(section) && begin < end) code_.push_back({begin, end});
  }
  std::sort(code_.begin(), code_.end(), [](const Range& a, const Range& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  for (const ElfSection& section : file.sections()) {
    const uint32_t type = section.header.sh_type;
    if (type == SHT_SYMTAB || type == SHT_DYNSYM) add_section(file, section);
  }
}

void SymbolTable::add_section(const ElfFile& file, const ElfSection& section) {
  Elf_Data* data = file.data(section);
  const uint64_t link = section.header.sh_link;
  if (data == nullptr || link == 0 || link > file.sections().size()) return;
  const Elf_Data* strings = file.data(file.sections()[link - 1]);
  const size_t entry_bytes = gelf_fsize(file.elf(), ELF_T_SYM, 1, EV_CURRENT);
  if (strings == nullptr || entry_bytes == 0) return;
  const size_t count = std::min<size_t>(data->d_size / entry_bytes, INT32_MAX);
  for (size_t i = 0; i < count; ++i) {
    GElf_Sym entry;
    if (gelf_getsym(data, static_cast<int>(i), &entry) == nullptr) break;
    const uint8_t rank = rank_of(entry);
    if (rank == 255) continue;
    const Range* range = code_range(entry.st_value);
    if (range == nullptr) continue;
    const std::string_view name = without_version(elf_string(strings, entry.st_name));
    if (is_marker(name)) continue;
    const uint64_t room = range->end - entry.st_value;
    symbols_.push_back(
        {entry.st_value, entry.st_value + std::min(entry.st_size, room), name, rank});
  }
}

const SymbolTable::Range* SymbolTable::code_range(uint64_t address) const {
  const auto next =
      std::upper_bound(code_.begin(), code_.end(), address,
                       [](uint64_t a, const Range& range) { return a < range.begin; });
  if (next == code_.begin()) return nullptr;
  const Range& range = *(next - 1);
  return address < range.end ? &range : nullptr;
}

void SymbolTable::finish() {
  drop_duplicates();
  give_sizes();
  cut();
}

/// Of several names at one address the best stays.
void SymbolTable::drop_duplicates() {
  std::sort(symbols_.begin(), symbols_.end(), [](const Symbol& a, const Symbol& b) {
    const bool a_has_no_size = a.end == a.begin, b_has_no_size = b.end == b.begin;
    const uint64_t a_reach = ~a.end, b_reach = ~b.end;  // the longest first
    const size_t a_length = a.name.size(), b_length = b.name.size();
    return std::tie(a.begin, a_has_no_size, a.rank, a_reach, a_length, a.name) <
           std::tie(b.begin, b_has_no_size, b.rank, b_reach, b_length, b.name);
  });
  symbols_.erase(std::unique(symbols_.begin(), symbols_.end(),
                             [](const Symbol& a, const Symbol& b) { return a.begin == b.begin; }),
                 symbols_.end());
}

/// A symbol without size reaches to the next; inside one that has a size it is only a label.
void SymbolTable::give_sizes() {
  std::vector<Symbol> kept;
  kept.reserve(symbols_.size());
  uint64_t covered_end = 0;  // of the symbols with a size so far
  for (size_t i = 0; i < symbols_.size(); ++i) {
    Symbol symbol = symbols_[i];
    if (symbol.end == symbol.begin) {
      if (symbol.begin < covered_end) continue;
      symbol.end = code_range(symbol.begin)->end;
      if (i + 1 < symbols_.size()) symbol.end = std::min(symbol.end, symbols_[i + 1].begin);
    } else {
      covered_end = std::max(covered_end, symbol.end);
    }
    kept.push_back(symbol);
  }
  symbols_ = std::move(kept);
}

/// Turns ranges that may nest or overlap into pieces that don't; the one that began last wins.
void SymbolTable::cut() {
  std::vector<uint32_t> open;
  const auto close_until = [&](uint64_t address) {
    while (!open.empty() && symbols_[open.back()].end <= address) {
      const uint64_t end = symbols_[open.back()].end;
      open.pop_back();
      while (!open.empty() && symbols_[open.back()].end <= end) open.pop_back();
      put(end, open.empty() ? kNone : open.back());
    }
  };
  for (uint32_t i = 0; i < symbols_.size(); ++i) {
    close_until(symbols_[i].begin);
    put(symbols_[i].begin, i);
    open.push_back(i);
  }
  close_until(~uint64_t{0});
}

void SymbolTable::put(uint64_t begin, uint32_t symbol) {
  if (!pieces_.empty() && pieces_.back().begin == begin) pieces_.pop_back();
  pieces_.push_back({begin, symbol});
}

uint32_t SymbolTable::find(uint64_t address) const {
  const auto next =
      std::upper_bound(pieces_.begin(), pieces_.end(), address,
                       [](uint64_t a, const Piece& piece) { return a < piece.begin; });
  return next == pieces_.begin() ? kNone : (next - 1)->symbol;
}

}  // namespace aon::symbols
