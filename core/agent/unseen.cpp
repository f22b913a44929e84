#include "core/agent/unseen.h"

#include <fcntl.h>
#include <gelf.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <vector>

#include "core/agent/border_events.h"
#include "core/base/unique_fd.h"
#include "core/provider/names.h"
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

void say(uint32_t process, ProviderState provider_state, const char* name,
         const std::string& reason, const std::string& remedy, Inbox* inbox) {
  ProviderDefinition state{};
  state.state = provider_state;
  inbox->define(process, DefinitionType::kProvider, state, {name, reason, remedy});
}

constexpr const char* kSharedLibrary = "link it with the shared MPI library";
constexpr const char* kPreloadTheTool = "load the tool by LD_PRELOAD";

/// The process that it became; null: it never was one.
const ProcessCell* process_of(const State& state, const RegisteredPid& registered) {
  const uint32_t count = state.header().process_count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count; ++i) {
    const ProcessCell& cell = state.process(i);
    if (cell.pid == registered.pid && cell.is_elsewhere == registered.is_elsewhere) return &cell;
  }
  return nullptr;
}

bool is_unseen(const ProcessCell& cell) {
  return cell.is_followed.load(std::memory_order_relaxed) != 0;
}

/// Whether a process has said Hello.
bool has_any(const State& state) {
  const uint32_t count = state.header().process_count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count; ++i) {
    if (!is_unseen(state.process(i))) return true;
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
  // Not mapped: the program may be built anew in place meanwhile, and a read beyond its end kills.
  const std::unique_ptr<Elf, int (*)(Elf*)> elf(elf_begin(file.get(), ELF_C_READ, nullptr),
                                                elf_end);
  if (!elf || elf_kind(elf.get()) != ELF_K_ELF) return Linkage::kUnknown;
  if (!has_interpreter(elf.get())) return Linkage::kStatic;
  if (defines(elf.get(), "PMPI_Init")) return Linkage::kOwnMpi;
  for (const char* name : {"MPI_Init", "MPI_Init_thread"}) {
    if (defines(elf.get(), name)) return Linkage::kOwnWrappers;
  }
  return Linkage::kDynamic;
}

Linkage UnseenPrograms::linkage_of_known(const std::string& path) {
  const auto [found, is_new] = known_.try_emplace(path, Linkage::kUnknown);
  if (is_new) found->second = linkage_of(path);
  return found->second;
}

UnseenPrograms::UnseenPrograms(const Options& options)
    : options_(options),
      wants_mpi_(provider::is_wanted({options.providers, options.without}, "mpi")) {}

void UnseenPrograms::report_mpi(const ProcessCell& cell, const std::string& mpi_library,
                                Inbox* inbox) {
  const std::string program = cell.program.get();
  const Linkage linkage = linkage_of_known(program);
  if (linkage == Linkage::kStatic || linkage == Linkage::kOwnMpi) {
    say(cell.process, ProviderState::kOff, "mpi", reason_of(program, linkage), kSharedLibrary,
        inbox);
  } else if (linkage == Linkage::kOwnWrappers) {
    say(cell.process, ProviderState::kOff, "mpi", reason_of(program, linkage), kPreloadTheTool,
        inbox);
  } else if (!mpi_library.empty()) {
    report_loaded(cell.process, mpi_library, inbox);
  } else {
    say(cell.process, ProviderState::kOff, "mpi", "no MPI call passed the preloaded library",
        "an MPI program: link the shared library, and call MPI_ names", inbox);
  }
}

void UnseenPrograms::report_loaded(uint32_t process, const std::string& mpi_library, Inbox* inbox) {
  say(process, ProviderState::kOff, "mpi",
      mpi_library + " is loaded, and no call passed libaon-mpi.so: the program makes none, looks " +
          "the functions up in MPI's own library (dlsym(), RTLD_DEEPBIND), or calls them by PMPI " +
          "names",
      "call them by MPI_ names, or look them up by dlsym(RTLD_DEFAULT, name)", inbox);
}

void UnseenPrograms::report_process(const ProcessCell& cell, const std::string& mpi_library,
                                    Inbox* inbox) {
  const bool is_below =
      cell.is_followed.load(std::memory_order_relaxed) == static_cast<uint32_t>(Followed::kBelow);
  if (wants_mpi_) report_mpi(cell, mpi_library, inbox);
  if (wants_mpi_ || is_below) {
    say(cell.process, ProviderState::kDegraded, "recording",
        "counters and samples begin when it had used a second of CPU time",
        std::string("aon-run") + (wants_mpi_ ? " --without mpi" : "") +
            (is_below ? " before that program" : "") + " has all",
        inbox);
  }
  const std::string event = wants_mpi_ ? first_border_event(options_.events) : std::string();
  if (event.empty()) return;
  if (const int error_number = try_border_event(event, runtime::counter_source())) {
    const runtime::CounterProblem problem = runtime::explain_counters(error_number);
    say(cell.process, ProviderState::kOff, "counters",
        std::string(problem.reason) + runtime::kNotAtBorders, problem.remedy, inbox);
    return;
  }
  say(cell.process, ProviderState::kOff, "counters",
      "the events that programs read themselves are read at calls, of which it made none",
      "aon-run --without mpi", inbox);
}

void UnseenPrograms::report(const State& state, Inbox* inbox) {
  const StateHeader& header = state.header();
  const uint32_t count =
      std::min(header.registered_count.load(std::memory_order_acquire),  // pairs with agent:cells
               kMaxRegistered);
  std::set<std::string> programs;
  for (uint32_t i = 0; i < count; ++i) {
    const RegisteredPid& registered = header.registered[i];
    const ProcessCell* process = process_of(state, registered);
    if (process == nullptr && registered.is_below == 0) programs.insert(registered.program);
    if (process != nullptr && is_unseen(*process)) programs.insert(process->program.get());
  }
  std::string reason;
  size_t named_count = 0;
  bool has_inside = false;
  bool has_wrappers = false;
  for (const std::string& program : programs) {
    if (std::filesystem::path(program).filename() == "aon-run") continue;  // records by itself
    const Linkage linkage = linkage_of_known(program);
    if (linkage == Linkage::kUnknown || linkage == Linkage::kDynamic) continue;
    (linkage == Linkage::kOwnWrappers ? has_wrappers : has_inside) = true;
    if (++named_count > kMaxNamedPrograms) continue;
    reason += (reason.empty() ? "" : "; ") + reason_of(program, linkage);
  }
  if (named_count == 0) return;
  if (named_count > kMaxNamedPrograms)
    reason += "; and " + std::to_string(named_count - kMaxNamedPrograms) + " more";
  std::string remedy = has_inside ? kSharedLibrary : "";
  if (has_wrappers) remedy += std::string(has_inside ? "; " : "") + kPreloadTheTool;
  ProviderDefinition definition{};
  definition.state = has_any(state) ? ProviderState::kDegraded : ProviderState::kOff;
  inbox->define(spool::kNodeProcess, DefinitionType::kProvider, definition,
                {"mpi", reason, remedy});
}

}  // namespace aon::agent
