/// Makes small ELF libraries with exactly the symbols a test wants, in any class and byte order,
/// written by libelf itself. Thread: any.
#pragma once

#include <gelf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace aon::symbols::test {

struct MadeSymbol {
  const char* name;
  uint64_t value;
  uint64_t bytes;
  int bind = STB_GLOBAL;
  int type = STT_FUNC;
};

constexpr uint64_t kCodeBegin = 0x1000;
constexpr uint64_t kCodeBytes = 0x400;

/// One section: its data stays where `data` says until the file is written.
inline void add_section(Elf* elf, GElf_Shdr header, void* data, size_t bytes, Elf_Type type) {
  Elf_Scn* scn = elf_newscn(elf);
  Elf_Data* block = elf_newdata(scn);
  block->d_buf = data;
  block->d_size = bytes;
  block->d_type = type;
  block->d_align = 8;
  gelf_update_shdr(scn, &header);
}

/// Content of a library with code at [kCodeBegin, kCodeBegin + kCodeBytes) and these symbols.
inline std::vector<uint8_t> make_elf(const std::vector<MadeSymbol>& symbols,
                                     int elf_class = ELFCLASS64, uint8_t encoding = ELFDATA2LSB) {
  elf_version(EV_CURRENT);
  const int fd = memfd_create("elf", MFD_CLOEXEC);
  Elf* elf = elf_begin(fd, ELF_C_WRITE, nullptr);
  gelf_newehdr(elf, elf_class);
  gelf_newphdr(elf, 1);
  std::string names(1, 0);
  std::vector<Elf64_Sym> table(symbols.size() + 1);
  const size_t entry_bytes = gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
  auto* bytes = reinterpret_cast<uint8_t*>(table.data());
  for (size_t i = 0; i < symbols.size(); ++i) {
    const MadeSymbol& symbol = symbols[i];
    const auto name = static_cast<uint32_t>(names.size());
    const auto info = static_cast<uint8_t>(symbol.bind << 4 | symbol.type);
    if (elf_class == ELFCLASS64) {
      const Elf64_Sym entry{name, info, 0, 1, symbol.value, symbol.bytes};
      std::memcpy(bytes + (i + 1) * entry_bytes, &entry, sizeof(entry));
    } else {
      const Elf32_Sym entry{
          name, static_cast<uint32_t>(symbol.value), static_cast<uint32_t>(symbol.bytes), info, 0,
          1};
      std::memcpy(bytes + (i + 1) * entry_bytes, &entry, sizeof(entry));
    }
    names += symbol.name;
    names += '\0';
  }
  std::vector<uint8_t> code(kCodeBytes, 0x90);
  std::string section_names("\0.text\0.symtab\0.strtab\0.shstrtab\0", 33);
  add_section(elf, {1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, kCodeBegin, 0, 0, 0, 0, 16, 0},
              code.data(), code.size(), ELF_T_BYTE);
  add_section(elf, {7, SHT_SYMTAB, 0, 0, 0, 0, 3, 1, 8, entry_bytes}, table.data(),
              (symbols.size() + 1) * entry_bytes, ELF_T_SYM);
  add_section(elf, {15, SHT_STRTAB, 0, 0, 0, 0, 0, 0, 1, 0}, names.data(), names.size(),
              ELF_T_BYTE);
  add_section(elf, {23, SHT_STRTAB, 0, 0, 0, 0, 0, 0, 1, 0}, section_names.data(),
              section_names.size(), ELF_T_BYTE);
  GElf_Ehdr header;
  gelf_getehdr(elf, &header);
  header.e_ident[EI_DATA] = encoding;
  header.e_type = ET_DYN;
  header.e_machine = elf_class == ELFCLASS64 ? EM_X86_64 : EM_386;
  header.e_shstrndx = 4;
  gelf_update_ehdr(elf, &header);
  elf_update(elf, ELF_C_NULL);  // lays out
  GElf_Shdr text;
  gelf_getshdr(elf_getscn(elf, 1), &text);
  GElf_Phdr segment{PT_LOAD,    PF_R | PF_X, text.sh_offset, kCodeBegin,
                    kCodeBegin, kCodeBytes,  kCodeBytes,     16};
  gelf_update_phdr(elf, 0, &segment);
  elf_update(elf, ELF_C_WRITE);
  elf_end(elf);
  std::vector<uint8_t> content(static_cast<size_t>(lseek(fd, 0, SEEK_END)));
  if (pread(fd, content.data(), content.size(), 0) < 0) content.clear();
  close(fd);
  return content;
}

}  // namespace aon::symbols::test
