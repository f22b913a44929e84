/// A program or library as raw bytes: reading its symbols ends, and what a lookup finds is a symbol
/// of the table. Byte 0 chooses whether the packed symbol table is looked into too.
#include <cstring>

#include "tests/fuzz/target.h"
#include "tests/unit/symbols/elf_maker.h"
#include "writers/symbols/debug_files.h"
#include "writers/symbols/symbol_table.h"

namespace aon::fuzz {

std::vector<Bytes> seeds() {
  const std::vector<symbols::test::MadeSymbol> names = {
      {"outer", 0x1000, 0x100},
      {"inner", 0x1040, 0x20},
      {"label", 0x1200, 0, STB_LOCAL, STT_NOTYPE},
      {"memcpy@@GLIBC_2.14", 0x1300, 0x10, STB_WEAK, STT_GNU_IFUNC}};
  std::vector<Bytes> inputs;
  for (const int elf_class : {ELFCLASS32, ELFCLASS64})
    for (const uint8_t encoding : {ELFDATA2LSB, ELFDATA2MSB}) {
      Bytes input = {static_cast<uint8_t>(inputs.size() & 1)};
      const Bytes file = symbols::test::make_elf(names, elf_class, encoding);
      input.insert(input.end(), file.begin(), file.end());
      inputs.push_back(input);
    }
  return inputs;
}

}  // namespace aon::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  using namespace aon;
  fuzz::Input input(data, bytes);
  const bool looks_into_packed = (input.take<uint8_t>() & 1) != 0;
  const Result<ElfFile> file = ElfFile::from_memory(input.take_bytes(bytes), "fuzz");
  if (!file) {
    fuzz::check(!file.error().message.empty());
    return 0;
  }
  symbols::SymbolTable table;
  table.add(*file);
  table.add_plt(*file);
  table.finish();
  for (uint64_t address = 0xff0; address < 0x1410; address += 7) {
    const uint32_t symbol = table.find(address);
    fuzz::check(symbol == symbols::SymbolTable::kNone || symbol < table.symbol_count());
    if (symbol != symbols::SymbolTable::kNone) fuzz::check(!table.name(symbol).empty());
  }
  fuzz::check(table.find(~uint64_t{0}) == symbols::SymbolTable::kNone);
  static_cast<void>(file->address_of(0x1000));
  if (looks_into_packed) static_cast<void>(symbols::unpack_debugdata(*file).has_value());
  return 0;
}
