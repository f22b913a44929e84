#include "mpi/loaded.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
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
  size_t string_bytes = 0;
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
    if (entry->d_tag == DT_STRSZ) tables.string_bytes = entry->d_un.d_val;
    if (entry->d_tag == DT_GNU_HASH) tables.gnu_hash = pointed<uint32_t>(file, *entry);
    if (entry->d_tag == DT_HASH) tables.hash = pointed<uint32_t>(file, *entry);
  }
  return tables;
}

bool is_definition(const Tables& tables, uint32_t index, const char* name) {
  const ElfW(Sym)& symbol = tables.symbols[index];
  const unsigned type = symbol.st_info & 0xf;
  const bool has_address = type == STT_FUNC || type == STT_OBJECT || type == STT_NOTYPE;
  return symbol.st_shndx != SHN_UNDEF && (has_address || type == STT_GNU_IFUNC) &&
         strcmp(tables.strings + symbol.st_name, name) == 0;
}

/// Index of the symbol; 0: none. The table is a header of four words, a filter in which two bits
/// are set for each name, a first index for each bucket, and hashes, of which the last one of a
/// bucket is odd.
uint32_t find_by_gnu_hash(const Tables& tables, const char* name) {
  uint32_t hash = 5381;
  for (const char* c = name; *c != '\0'; ++c) hash = hash * 33 + static_cast<uint8_t>(*c);
  const uint32_t bucket_count = tables.gnu_hash[0];
  const uint32_t first = tables.gnu_hash[1];
  const uint32_t filter_count = tables.gnu_hash[2];
  const auto* filter = reinterpret_cast<const ElfW(Addr)*>(tables.gnu_hash + 4);
  constexpr uint32_t kBits = 8 * sizeof *filter;
  const ElfW(Addr) seen = filter_count != 0 ? filter[hash / kBits % filter_count] : 0;
  const uint32_t second = hash >> tables.gnu_hash[3];
  if ((seen >> hash % kBits & seen >> second % kBits & 1) == 0) return 0;
  const auto* buckets = reinterpret_cast<const uint32_t*>(filter + filter_count);
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

/// Where the loaded part ends that `address` lies in; 0: in none.
uintptr_t end_of_part(const dl_phdr_info& info, uintptr_t address) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info.dlpi_phdr[i];
    const uintptr_t start = info.dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && address - start < part.p_memsz) return start + part.p_memsz;
  }
  return 0;
}

/// How many symbols may be references. The table of hashes knows where definitions begin, but for a
/// file without any: then all as far as the strings, which linkers place behind the symbols.
/// patchelf moves these into another part, and what lies between the parts need not be mapped.
size_t reference_count(const dl_phdr_info& info, const Tables& tables) {
  const uint32_t first_definition = tables.gnu_hash != nullptr ? tables.gnu_hash[1] : 0;
  if (first_definition > 1) return first_definition;
  const auto start = reinterpret_cast<uintptr_t>(tables.symbols);
  const auto strings = reinterpret_cast<uintptr_t>(tables.strings);
  uintptr_t end = end_of_part(info, start);
  if (strings > start && strings < end) end = strings;
  return end > start ? (end - start) / sizeof(ElfW(Sym)) : 0;
}

/// Whether `visit` has said so of the name of a reference, and whether it is a weak one.
template <class Visit>
bool any_reference(const dl_phdr_info& info, const Visit& visit) {
  const Tables tables = tables_of(described(info));
  if (tables.symbols == nullptr || tables.strings == nullptr) return false;
  const size_t count = reference_count(info, tables);
  for (size_t i = 1; i < count; ++i) {
    const ElfW(Sym)& symbol = tables.symbols[i];
    if (symbol.st_shndx != SHN_UNDEF || symbol.st_name >= tables.string_bytes) continue;
    const bool is_weak = ELF64_ST_BIND(symbol.st_info) == STB_WEAK;
    if (!is_weak && ELF64_ST_BIND(symbol.st_info) != STB_GLOBAL) continue;
    if (visit(tables.strings + symbol.st_name, is_weak)) return true;
  }
  return false;
}

bool needs(const dl_phdr_info& info, const char* wanted) {
  return any_reference(info, [wanted](const char* name, bool is_weak) {
    return !is_weak && strcmp(name, wanted) == 0;
  });
}

struct ReferenceVisit {
  void (*note)(const char* name, void* context);
  void* context;
};

int note_references(dl_phdr_info* info, size_t, void* out) {
  const ReferenceVisit& visit = *static_cast<ReferenceVisit*>(out);
  if (holds(*info, &g_token)) return 0;
  any_reference(*info, [&visit](const char* name, bool) {
    if (strncmp(name, "MPI", 3) == 0) visit.note(name, visit.context);
    return false;
  });
  return 0;
}

/// Ours have weak references to it.
int note_loader(dl_phdr_info* info, size_t, void* out) {
  bool& is_found = *static_cast<bool*>(out);
  is_found = needs(*info, "dlopen");
  return is_found ? 1 : 0;
}

struct FlagsSearch {
  const void* address;
  ElfW(Word) flags;
};

int note_flags(dl_phdr_info* info, size_t, void* out) {
  FlagsSearch& search = *static_cast<FlagsSearch*>(out);
  const auto at = reinterpret_cast<ElfW(Addr)>(search.address);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type == PT_LOAD && at - (info->dlpi_addr + part.p_vaddr) < part.p_memsz)
      search.flags = part.p_flags;
  }
  return 0;
}

/// ld.so's, for debuggers. By name: we are linked to libc alone.
const r_debug* g_files;
const link_map* first_file() { return g_files != nullptr ? g_files->r_map : nullptr; }

/// The loaded MPI libraries. Changed, and read, under ld.so's lock only.
struct MpiLibraries {
  static constexpr uint32_t kMost = 8;  ///< a program has one, or Open MPI's two
  unsigned long long loaded = 0;        ///< files that were ever loaded and unloaded, when these
  unsigned long long unloaded = 0;      ///< were found
  uint32_t count = 0;
  LoadedFile files[kMost];
};
MpiLibraries g_libraries;

bool are_known(const dl_phdr_info& info) {
  return info.dlpi_adds == g_libraries.loaded && info.dlpi_subs == g_libraries.unloaded;
}

int note_mpi_library(dl_phdr_info* info, size_t, void* out) {
  bool& is_first = *static_cast<bool*>(out);
  if (is_first) {
    if (are_known(*info)) return 1;
    g_libraries.loaded = info->dlpi_adds;
    g_libraries.unloaded = info->dlpi_subs;
    g_libraries.count = 0;
    is_first = false;
  }
  if (g_libraries.count == MpiLibraries::kMost || holds(*info, &g_token)) return 0;
  const LoadedFile file = described(*info);
  if (definition_in(file, "PMPI_Init") != nullptr) g_libraries.files[g_libraries.count++] = file;
  return 0;
}

bool has_either(const LoadedFile& file, const char* name) {
  char profiling_name[128];
  snprintf(profiling_name, sizeof profiling_name, "P%s", name);
  return definition_in(file, name) != nullptr || definition_in(file, profiling_name) != nullptr;
}

struct PresenceSearch {
  const char* name;
  Presence found;
  bool is_over;
};

/// Looks at the first file only: whether what was found before still holds.
int look_into_libraries(dl_phdr_info* info, size_t, void* out) {
  PresenceSearch& search = *static_cast<PresenceSearch*>(out);
  if (!are_known(*info)) return 1;
  search.is_over = true;
  search.found = g_libraries.count == 0 ? Presence::kNoLibrary : Presence::kLacking;
  for (uint32_t i = 0; i < g_libraries.count; ++i) {
    if (has_either(g_libraries.files[i], search.name)) search.found = Presence::kThere;
  }
  return 1;
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

const ElfW(Sym) * definition_in(const LoadedFile& file, const char* name) noexcept {
  const Tables tables = tables_of(file);
  if (tables.symbols == nullptr || tables.strings == nullptr) return nullptr;
  uint32_t index = 0;
  if (tables.gnu_hash != nullptr) {
    index = find_by_gnu_hash(tables, name);
  } else if (tables.hash != nullptr) {
    index = find_by_hash(tables, name);
  }
  return index != 0 ? &tables.symbols[index] : nullptr;
}

void* symbol_in(const LoadedFile& file, const char* name) noexcept {
  const ElfW(Sym)* symbol = definition_in(file, name);
  if (symbol == nullptr || ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC) return nullptr;
  return reinterpret_cast<void*>(file.base + symbol->st_value);
}

bool is_of_the_loader(const void* address) noexcept {
  // No lock: as presence_in_child(). ld.so's headers lie in its first part.
  for (const link_map* map = first_file(); map != nullptr; map = map->l_next) {
    if (map->l_addr != g_files->r_ldbase) continue;
    const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(map->l_addr);
    const auto* parts = reinterpret_cast<const ElfW(Phdr)*>(map->l_addr + header->e_phoff);
    for (int i = 0; i < header->e_phnum; ++i) {
      const auto at = reinterpret_cast<ElfW(Addr)>(address) - (map->l_addr + parts[i].p_vaddr);
      if (parts[i].p_type == PT_LOAD && at < parts[i].p_memsz) return true;
    }
  }
  return false;
}

bool is_executable(const void* address) noexcept {
  FlagsSearch search = {address, PF_X};
  dl_iterate_phdr(note_flags, &search);
  return (search.flags & PF_X) != 0;
}

bool may_load_libraries() noexcept {
  bool is_found = false;
  dl_iterate_phdr(note_loader, &is_found);
  if (has_libdl()) g_files = static_cast<const r_debug*>(dlsym(RTLD_DEFAULT, "_r_debug"));
  return is_found;
}

void visit_references(void (*note)(const char* name, void* context), void* context) noexcept {
  ReferenceVisit visit = {note, context};
  dl_iterate_phdr(note_references, &visit);
}

Presence presence_of(const char* name) noexcept {
  PresenceSearch search = {name, Presence::kNoLibrary, false};
  while (!search.is_over) {
    bool is_first = true;
    dl_iterate_phdr(note_mpi_library, &is_first);
    dl_iterate_phdr(look_into_libraries, &search);
  }
  return search.found;
}

Presence presence_in_child(const char* name) noexcept {
  Presence found = Presence::kNoLibrary;
  for (const link_map* map = first_file(); map != nullptr; map = map->l_next) {
    const LoadedFile file = {map->l_addr, map->l_name, map->l_ld};
    if (map->l_ld == _DYNAMIC || definition_in(file, "PMPI_Init") == nullptr) continue;
    if (has_either(file, name)) return Presence::kThere;
    found = Presence::kLacking;
  }
  return found;
}

}  // namespace aon::mpi
