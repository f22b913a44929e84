#include "perf/sampling/mappings.h"

#include <aon/proc_maps.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

namespace aon::perf {
namespace {

constexpr uint64_t kMaxNotesBytes = 1u << 16;
constexpr const char* kDeletedSuffix = " (deleted)";  ///< of the kernel, behind a path

/// Memory that no file lies behind: JIT code, huge pages, shared memory.
bool is_anonymous(const std::string& path) {
  return path.empty() || path.starts_with("//anon") || path.starts_with("/memfd:") ||
         path.starts_with("/dev/zero") || path.starts_with("/SYSV") || path.starts_with("[heap") ||
         path.starts_with("[stack") || path.starts_with("[anon");
}

/// The id in one segment or section of notes.
std::string build_id_in(Elf* elf, uint64_t offset, uint64_t byte_count, Elf_Type type) {
  if (byte_count == 0 || byte_count > kMaxNotesBytes) return {};
  Elf_Data* data = elf_getdata_rawchunk(elf, static_cast<int64_t>(offset), byte_count, type);
  if (data == nullptr) return {};
  GElf_Nhdr note;
  size_t name_at = 0;
  size_t text_at = 0;
  for (size_t at = 0; (at = gelf_getnote(data, at, &note, &name_at, &text_at)) > 0;) {
    const char* bytes = static_cast<const char*>(data->d_buf);
    if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4) continue;
    if (std::memcmp(bytes + name_at, "GNU", 4) != 0) continue;
    return {bytes + text_at, std::min<size_t>(note.n_descsz, sizeof(MappingDefinition::build_id))};
  }
  return {};
}

std::string build_id_of(Elf* elf) {
  size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) return {};
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) return {};
    if (segment.p_type != PT_NOTE) continue;
    const Elf_Type type = segment.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR;
    std::string id = build_id_in(elf, segment.p_offset, segment.p_filesz, type);
    if (!id.empty()) return id;
  }
  return {};
}

}  // namespace

std::string read_build_id(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return {};
  std::string id;
  struct stat status {};
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
    elf_version(EV_CURRENT);
    if (Elf* elf = elf_begin(fd, ELF_C_READ, nullptr); elf != nullptr) {
      if (elf_kind(elf) == ELF_K_ELF) id = build_id_of(elf);
      elf_end(elf);
    }
  }
  close(fd);
  return id;
}

std::string read_vdso_build_id() {
  auto* begin = reinterpret_cast<char*>(getauxval(AT_SYSINFO_EHDR));
  if (begin == nullptr) return {};
  ElfW(Ehdr) header;
  std::memcpy(&header, begin, sizeof(header));
  const size_t bytes = header.e_shoff + size_t{header.e_shnum} * header.e_shentsize;
  elf_version(EV_CURRENT);
  Elf* elf = elf_memory(begin, bytes);
  if (elf == nullptr) return {};
  std::string id = build_id_of(elf);
  elf_end(elf);
  return id;
}

std::string read_mapped_path(pid_t pid, uint64_t start, uint64_t end) {
  char link[96];
  snprintf(link, sizeof(link), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, start, end);
  char path[PATH_MAX];
  const ssize_t bytes = readlink(link, path, sizeof(path));
  return bytes <= 0 ? std::string() : std::string(path, static_cast<size_t>(bytes));
}

std::vector<RawMapping> parse_maps(const std::string& text) {
  std::vector<RawMapping> mappings;
  std::string_view rest = text;
  for (ProcMapping line; take_mapping(&rest, &line);) {
    if (!line.is_executable()) continue;
    RawMapping mapping;
    mapping.start = line.start;
    mapping.end = line.end;
    mapping.file_offset = line.file_offset;
    mapping.inode = line.inode;
    mapping.path = line.path;
    mappings.push_back(std::move(mapping));
  }
  return mappings;
}

/// Takes what `mapping` covers out of the entries; what sticks out of it stays. False: there was
/// nothing.
bool Mappings::cut(const RawMapping& mapping) {
  bool has_cut = false;
  auto at = entries_.upper_bound(mapping.start);
  if (at != entries_.begin()) --at;
  while (at != entries_.end() && at->second.raw.start < mapping.end) {
    if (at->second.raw.end <= mapping.start) {
      ++at;
      continue;
    }
    const RawMapping old = at->second.raw;
    at = entries_.erase(at);
    has_cut = true;
    if (old.start < mapping.start) {
      RawMapping before = old;
      before.end = mapping.start;
      entries_[before.start] = {before, kNoMapping};
    }
    if (old.end > mapping.end) {
      RawMapping behind = old;
      behind.start = mapping.end;
      behind.file_offset += mapping.end - old.start;
      entries_[behind.start] = {behind, kNoMapping};
    }
  }
  return has_cut;
}

bool Mappings::add(const RawMapping& mapping) {
  auto at = entries_.upper_bound(mapping.start);
  if (at != entries_.begin()) {
    const RawMapping& old = (--at)->second.raw;
    const bool is_same = old.path == mapping.path && old.inode == mapping.inode &&
                         old.start - old.file_offset == mapping.start - mapping.file_offset;
    if (is_same && old.start <= mapping.start && old.end >= mapping.end) return false;
  }
  const bool has_cut = cut(mapping);
  entries_[mapping.start] = {mapping, kNoMapping};
  return std::exchange(has_unknown_, false) || has_cut;
}

bool Mappings::replace(const std::vector<RawMapping>& mappings) {
  bool has_changed = false;
  std::map<uint64_t, uint64_t> there;  // start -> end
  for (const RawMapping& mapping : mappings) {
    has_changed |= add(mapping);
    there[mapping.start] = mapping.end;
  }
  for (auto at = entries_.begin(); at != entries_.end();) {
    const auto next = there.upper_bound(at->first);
    const bool is_there = next != there.begin() && at->first < std::prev(next)->second;
    has_changed |= !is_there;
    at = is_there ? std::next(at) : entries_.erase(at);
  }
  return has_changed;
}

void Mappings::use(Entry* entry) {
  entry->id = next_id_++;
  Used used{};
  used.path = entry->raw.path;
  used.definition.process = process_;
  used.definition.id = entry->id;
  used.definition.start = entry->raw.start;
  used.definition.end = entry->raw.end;
  used.definition.file_offset = entry->raw.file_offset;
  const std::string now = read_path_(entry->raw.start, entry->raw.end);
  // The list of mappings writes a newline as \012 (proc_pid_maps(5)), the link does not.
  if (used.path.find('\\') != std::string::npos && !now.empty()) used.path = now;
  if (now.ends_with(kDeletedSuffix) && !used.path.ends_with(kDeletedSuffix))
    used.path += kDeletedSuffix;
  const std::string& id = build_id_of(entry->raw, used.path);
  used.definition.build_id_bytes = static_cast<uint8_t>(id.size());
  std::memcpy(used.definition.build_id, id.data(), id.size());
  used_.push_back(std::move(used));
}

const std::string& Mappings::build_id_of(const RawMapping& mapping, const std::string& path) {
  static const std::string kNone;
  const bool is_vdso = path == "[vdso]";
  if (!is_vdso && !path.starts_with('/')) return kNone;
  if (path.ends_with(kDeletedSuffix)) return kNone;
  const auto [known, is_new] = build_ids_.try_emplace({path, mapping.inode});
  if (is_new) known->second = is_vdso ? read_vdso_build_id() : read_(root_ + path);
  return known->second;
}

Mappings::Place Mappings::find(uint64_t address) {
  auto at = entries_.upper_bound(address);
  if (at == entries_.begin() || address >= std::prev(at)->second.raw.end) {
    has_unknown_ = true;
    return {kNoMapping, address};
  }
  Entry& entry = (--at)->second;
  if (is_anonymous(entry.raw.path)) return {kNoMapping, address};
  if (entry.id == kNoMapping) use(&entry);
  return {entry.id, address - entry.raw.start + entry.raw.file_offset};
}

bool Mappings::is_code(uint64_t address) const {
  auto at = entries_.upper_bound(address);
  return at != entries_.begin() && address < (--at)->second.raw.end;
}

std::vector<Mappings::Used> Mappings::take_used() { return std::exchange(used_, {}); }

}  // namespace aon::perf
