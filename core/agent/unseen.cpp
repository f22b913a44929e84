#include "core/agent/unseen.h"

#include <fcntl.h>
#include <gelf.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <vector>

#include "core/base/unique_fd.h"
#include "core/spool/format.h"

namespace aon::agent {
namespace {

constexpr size_t kMaxNamedPrograms = 4;

bool has_interpreter(Elf* elf) {
  size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) return true;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf, static_cast<int>(i), &header) != nullptr && header.p_type == PT_INTERP)
      return true;
  }
  return false;
}

bool defines(Elf* elf, Elf_Scn* section, const GElf_Shdr& header, const char* wanted) {
  if (header.sh_entsize == 0) return false;
  const size_t count = header.sh_size / header.sh_entsize;
  Elf_Data* data = elf_getdata(section, nullptr);
  for (size_t i = 0; data != nullptr && i < count; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) return false;
    if (symbol.st_shndx == SHN_UNDEF || GELF_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
    const char* name = elf_strptr(elf, header.sh_link, symbol.st_name);
    if (name != nullptr && std::strcmp(name, wanted) == 0) return true;
  }
  return false;
}

bool defines(Elf* elf, const char* wanted) {
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr;
       section = elf_nextscn(elf, section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    if (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) continue;
    if (defines(elf, section, header, wanted)) return true;
  }
  return false;
}

bool has_said_hello(const State& state, const RegisteredPid& registered) {
  const uint32_t count = state.header().process_count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count; ++i) {
    const ProcessCell& cell = state.process(i);
    if (cell.pid == registered.pid && cell.is_elsewhere == registered.is_elsewhere) return true;
  }
  return false;
}

std::string reason_of(const std::string& program, Linkage linkage) {
  if (linkage == Linkage::kStatic)
    return program + " is linked statically: no library can be loaded into it";
  if (linkage == Linkage::kOwnMpi)
    return program + " is linked with a static MPI library: its calls stay inside it";
  return program + " has MPI_Init of its own, as of a tool that is linked into it: its calls go " +
         "on by PMPI names";
}

}  // namespace

Linkage linkage_of(const std::string& path) {
  if (elf_version(EV_CURRENT) == EV_NONE) return Linkage::kUnknown;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return Linkage::kUnknown;
  const std::unique_ptr<Elf, int (*)(Elf*)> elf(elf_begin(file.get(), ELF_C_READ_MMAP, nullptr),
                                                elf_end);
  if (!elf || elf_kind(elf.get()) != ELF_K_ELF) return Linkage::kUnknown;
  if (!has_interpreter(elf.get())) return Linkage::kStatic;
  if (defines(elf.get(), "PMPI_Init")) return Linkage::kOwnMpi;
  for (const char* name : {"MPI_Init", "MPI_Init_thread"}) {
    if (defines(elf.get(), name)) return Linkage::kOwnWrappers;
  }
  return Linkage::kDynamic;
}

void report_unseen_programs(const State& state, Inbox* inbox) {
  const StateHeader& header = state.header();
  const uint32_t count =
      std::min(header.registered_count.load(std::memory_order_acquire),  // pairs with agent:cells
               kMaxRegistered);
  std::set<std::string> programs;
  for (uint32_t i = 0; i < count; ++i) {
    const RegisteredPid& registered = header.registered[i];
    if (!has_said_hello(state, registered)) programs.insert(registered.program);
  }
  std::string reason;
  size_t named_count = 0;
  bool has_inside = false;
  bool has_wrappers = false;
  for (const std::string& program : programs) {
    if (std::filesystem::path(program).filename() == "aon-run") continue;  // records by itself
    const Linkage linkage = linkage_of(program);
    if (linkage == Linkage::kUnknown || linkage == Linkage::kDynamic) continue;
    (linkage == Linkage::kOwnWrappers ? has_wrappers : has_inside) = true;
    if (++named_count > kMaxNamedPrograms) continue;
    reason += (reason.empty() ? "" : "; ") + reason_of(program, linkage);
  }
  if (named_count == 0) return;
  if (named_count > kMaxNamedPrograms)
    reason += "; and " + std::to_string(named_count - kMaxNamedPrograms) + " more";
  std::string remedy = has_inside ? "link it with the shared MPI library" : "";
  if (has_wrappers) remedy += std::string(has_inside ? "; " : "") + "load the tool by LD_PRELOAD";
  ProviderDefinition definition{};
  const bool is_empty = header.process_count.load(std::memory_order_relaxed) == 0;
  definition.state = is_empty ? ProviderState::kOff : ProviderState::kDegraded;
  inbox->define(spool::kNodeProcess, DefinitionType::kProvider, definition,
                {"mpi", reason, remedy});
}

}  // namespace aon::agent
