/// SymbolTable: which function an address belongs to. Reads the symbol tables of one or more files
/// of the same program (.symtab, .dynsym, the PLT) once, sorts, and cuts the address space into
/// pieces that have one name each; a lookup is a binary search.
///
/// Which of several names wins is the same in every run: a function before a label, global before
/// weak before local, the longest, the shortest name, the first in the alphabet. Where ranges nest,
/// the innermost wins. A symbol without size reaches to the next one or to its section's end, and
/// counts only where no symbol with a size is.
/// Thread: one builds, any look up.   Cost: about 1 us a symbol to build, 100 ns a lookup.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/elf_file.h"

namespace aon::symbols {

class SymbolTable {
 public:
  static constexpr uint32_t kNone = ~0u;

  /// Adds the symbols of `file`, which must outlive this.
  void add(const ElfFile& file);
  /// Adds NAME@plt for the PLT entries of `file` (x86-64). After every add(), before finish().
  void add_plt(const ElfFile& file);
  /// Sorts. After it the table only answers.
  void finish();

  /// Number of the symbol that covers `address`, kNone when there is none.
  uint32_t find(uint64_t address) const;
  /// Its name as the file spells it, without a version.
  std::string_view name(uint32_t symbol) const { return symbols_[symbol].name; }
  size_t symbol_count() const { return symbols_.size(); }

 private:
  struct Symbol {
    uint64_t begin = 0;
    uint64_t end = 0;  ///< == begin: its size is not known
    std::string_view name;
    uint8_t rank = 0;  ///< smaller wins
  };
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  struct Piece {
    uint64_t begin = 0;
    uint32_t symbol = kNone;
  };

  void add_section(const ElfFile& file, const ElfSection& section);
  const Range* code_range(uint64_t address) const;
  void drop_duplicates();
  void give_sizes();
  void cut();
  void put(uint64_t begin, uint32_t symbol);

  std::vector<Symbol> symbols_;
  std::vector<Range> code_;  ///< sections of code, by address
  std::vector<Piece> pieces_;
  std::deque<std::string> made_names_;
};

}  // namespace aon::symbols
