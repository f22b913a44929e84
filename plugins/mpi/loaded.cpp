#include "mpi/loaded.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

// aon/old_libc.h
#pragma weak dladdr1
#pragma weak dlsym

namespace aon::mpi {
namespace {

const char g_token = 0;  ///< lies in this library

/// Of a file, as far as they are needed to find a name.
struct Tables {
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const uint32_t* gnu_hash = nullptr;
  const uint32_t* hash = nullptr;
};

/// What an entry of the dynamic section points to: not every machine's ld.so relocates it in place.
template <class T>
const T* pointed(const LoadedFile& file, const ElfW(Dyn) & entry) {
  const ElfW(Addr) at = entry.d_un.d_ptr;
  return reinterpret_cast<const T*>(at < file.base ? at + file.base : at);
}

Tables tables_of(const LoadedFile& file) {
  Tables tables;
  const ElfW(Dyn)* entry = file.dynamic;
  for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SYMTAB) tables.symbols = pointed<ElfW(Sym)>(file, *entry);
    if (entry->d_tag == DT_STRTAB) tables.strings = pointed<char>(file, *entry);
    if (entry->d_tag == DT_GNU_HASH) tables.gnu_hash = pointed<uint32_t>(file, *entry);
    if (entry->d_tag == DT_HASH) tables.hash = pointed<uint32_t>(file, *entry);
  }
  return tables;
}

bool is_definition(const Tables& tables, uint32_t index, const char* name) {
  const ElfW(Sym)& symbol = tables.symbols[index];
  const unsigned type = symbol.st_info & 0xf;
  const bool is_plain = type == STT_FUNC || type == STT_OBJECT || type == STT_NOTYPE;
  return symbol.st_shndx != SHN_UNDEF && is_plain &&
         strcmp(tables.strings + symbol.st_name, name) == 0;
}

/// Index of the symbol; 0: none. The table is a header of four words, a filter, a first index for
/// each bucket, and hashes, of which the last one of a bucket is odd.
uint32_t find_by_gnu_hash(const Tables& tables, const char* name) {
  uint32_t hash = 5381;
  for (const char* c = name; *c != '\0'; ++c) hash = hash * 33 + static_cast<uint8_t>(*c);
  const uint32_t bucket_count = tables.gnu_hash[0];
  const uint32_t first = tables.gnu_hash[1];
  constexpr uint32_t kFilterWords = sizeof(ElfW(Addr)) / sizeof(uint32_t);
  const uint32_t* buckets = tables.gnu_hash + 4 + size_t{tables.gnu_hash[2]} * kFilterWords;
  const uint32_t* hashes = buckets + bucket_count;
  uint32_t index = bucket_count != 0 ? buckets[hash % bucket_count] : 0;
  if (index < first || index == 0) return 0;
  for (;; ++index) {
    const uint32_t here = hashes[index - first];
    if ((here | 1) == (hash | 1) && is_definition(tables, index, name)) return index;
    if ((here & 1) != 0) return 0;
  }
}

/// The same by the table of System V: two counts, a first index for each bucket, and for each
/// symbol the next one.
uint32_t find_by_hash(const Tables& tables, const char* name) {
  uint32_t hash = 0;
  for (const char* c = name; *c != '\0'; ++c) {
    hash = (hash << 4) + static_cast<uint8_t>(*c);
    hash = (hash ^ ((hash & 0xf0000000) >> 24)) & 0x0fffffff;
  }
  const uint32_t bucket_count = tables.hash[0];
  const uint32_t* next = tables.hash + 2 + bucket_count;
  uint32_t index = bucket_count != 0 ? tables.hash[2 + hash % bucket_count] : 0;
  while (index != 0 && !is_definition(tables, index, name)) index = next[index];
  return index;
}

bool holds(const dl_phdr_info& info, const void* address) {
  const auto at = reinterpret_cast<ElfW(Addr)>(address);
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info.dlpi_phdr[i];
    const ElfW(Addr) start = info.dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && at >= start && at - start < part.p_memsz) return true;
  }
  return false;
}

LoadedFile described(const dl_phdr_info& info) {
  LoadedFile file = {info.dlpi_addr, info.dlpi_name, nullptr};
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info.dlpi_phdr[i];
    if (part.p_type == PT_DYNAMIC)
      file.dynamic = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + part.p_vaddr);
  }
  return file;
}

struct FileSearch {
  const void* address;
  LoadedFile found;
};

int note_file(dl_phdr_info* info, size_t, void* out) {
  FileSearch& search = *static_cast<FileSearch*>(out);
  if (!holds(*info, search.address)) return 0;
  search.found = described(*info);
  return 1;
}

/// Goes through the files in the order in which names are looked up.
struct SymbolSearch {
  const char* name;
  const ElfW(Dyn) * first;  ///< the file to begin with; null: the program
  const void* behind;       ///< an address in the file to begin behind; null: none
  void* found;
};

int note_symbol(dl_phdr_info* info, size_t, void* out) {
  SymbolSearch& search = *static_cast<SymbolSearch*>(out);
  const LoadedFile file = described(*info);
  if (search.first != nullptr && search.first != file.dynamic) return 0;
  search.first = nullptr;
  if (search.behind != nullptr) {
    if (holds(*info, search.behind)) search.behind = nullptr;
    return 0;
  }
  search.found = symbol_in(file, search.name);
  return search.found != nullptr ? 1 : 0;
}

}  // namespace

bool has_libdl() noexcept { return dlsym != nullptr; }

LoadedFile file_of(const void* address) noexcept {
  if (dladdr1 == nullptr) {
    FileSearch search = {address, {}};
    dl_iterate_phdr(note_file, &search);
    return search.found;
  }
  Dl_info file;
  link_map* map = nullptr;
  if (dladdr1(address, &file, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) return {};
  return map != nullptr ? LoadedFile{map->l_addr, map->l_name, map->l_ld} : LoadedFile{};
}

const char* soname_of(const LoadedFile& file) noexcept {
  const char* strings = tables_of(file).strings;
  const ElfW(Dyn)* entry = file.dynamic;
  for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SONAME && strings != nullptr) return strings + entry->d_un.d_val;
  }
  const char* slash = strrchr(file.path, '/');
  return slash != nullptr ? slash + 1 : file.path;
}

void* symbol_behind_us(const char* name) noexcept {
  if (dlsym != nullptr) return dlsym(RTLD_NEXT, name);
  SymbolSearch search = {name, nullptr, &g_token, nullptr};
  dl_iterate_phdr(note_symbol, &search);
  return search.found;
}

void* symbol_of_program(const char* name) noexcept {
  if (dlsym != nullptr) return dlsym(RTLD_DEFAULT, name);
  return symbol_since({}, name);
}

void* symbol_since(const LoadedFile& file, const char* name) noexcept {
  SymbolSearch search = {name, file.dynamic, nullptr, nullptr};
  dl_iterate_phdr(note_symbol, &search);
  return search.found;
}

void* symbol_in(const LoadedFile& file, const char* name) noexcept {
  const Tables tables = tables_of(file);
  if (tables.symbols == nullptr || tables.strings == nullptr) return nullptr;
  uint32_t index = 0;
  if (tables.gnu_hash != nullptr) {
    index = find_by_gnu_hash(tables, name);
  } else if (tables.hash != nullptr) {
    index = find_by_hash(tables, name);
  }
  if (index == 0) return nullptr;
  return reinterpret_cast<void*>(file.base + tables.symbols[index].st_value);
}

}  // namespace aon::mpi
