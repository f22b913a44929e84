#include "core/base/elf_file.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/file.h"

namespace aon {

namespace {

constexpr size_t kMaxNameBytes = 1 << 20;

Error damaged(const std::string& path, const char* what) {
  return {Code::kDamaged, path + ": damaged ELF file: " + what};
}

}  // namespace

std::string_view elf_string(const Elf_Data* strings, uint64_t offset) {
  if (strings == nullptr || strings->d_buf == nullptr || offset >= strings->d_size) return {};
  const char* begin = static_cast<const char*>(strings->d_buf) + offset;
  return {begin, strnlen(begin, std::min<uint64_t>(strings->d_size - offset, kMaxNameBytes))};
}

Result<ElfFile> ElfFile::open(const std::string& path, Access access) {
  // Not blocking: the open of a fifo would wait for its writer.
  Result<UniqueFd> fd = open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd) return fd.error();
  struct stat status {};
  if (fstat(fd->get(), &status) != 0) return errno_error("stat", path, errno);
  if (!S_ISREG(status.st_mode)) return Error{Code::kInvalid, path + ": is not an ordinary file"};
  ElfFile file;
  file.path_ = path;
  file.fd_ = std::move(*fd);
  elf_version(EV_CURRENT);
  const Elf_Cmd command = access == Access::kMapped ? ELF_C_READ_MMAP : ELF_C_READ;
  file.elf_.reset(elf_begin(file.fd_.get(), command, nullptr));
  return read(std::move(file));
}

Result<ElfFile> ElfFile::from_memory(std::vector<uint8_t> bytes, std::string label) {
  ElfFile file;
  file.path_ = std::move(label);
  file.bytes_ = std::move(bytes);
  elf_version(EV_CURRENT);
  file.elf_.reset(elf_memory(reinterpret_cast<char*>(file.bytes_.data()), file.bytes_.size()));
  return read(std::move(file));
}

Result<ElfFile> ElfFile::read(ElfFile file) {
  if (!file.elf_ || elf_kind(file.elf_.get()) != ELF_K_ELF)
    return Error{Code::kInvalid, file.path_ + ": is not an ELF file"};
  if (Status status = file.read_headers(); !status) return status.error();
  return file;
}

Status ElfFile::read_headers() {
  Elf* elf = elf_.get();
  GElf_Ehdr header;
  if (gelf_getehdr(elf, &header) == nullptr) return damaged(path_, "its header");
  if (header.e_type != ET_EXEC && header.e_type != ET_DYN)
    return Error{Code::kInvalid, path_ + ": is neither a program nor a library"};
  machine_ = header.e_machine;
  size_t segment_count = 0;
  if (elf_getphdrnum(elf, &segment_count) != 0) return damaged(path_, "its program headers");
  for (size_t i = 0; i < segment_count; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) break;
    if (segment.p_type == PT_LOAD && segment.p_filesz != 0)
      segments_.push_back({segment.p_offset, segment.p_vaddr, segment.p_filesz});
  }
  size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) names = 0;
  Elf_Scn* name_section = names != 0 ? elf_getscn(elf, names) : nullptr;
  const Elf_Data* name_data =
      name_section != nullptr ? elf_rawdata(name_section, nullptr) : nullptr;
  for (Elf_Scn* scn = elf_nextscn(elf, nullptr); scn != nullptr; scn = elf_nextscn(elf, scn)) {
    ElfSection section;
    section.handle = scn;
    if (gelf_getshdr(scn, &section.header) == nullptr) break;
    section.name = elf_string(name_data, section.header.sh_name);
    sections_.push_back(section);
  }
  const void* id = nullptr;
  const ssize_t id_bytes = dwelf_elf_gnu_build_id(elf, &id);
  if (id_bytes > 0) build_id_.assign(static_cast<const char*>(id), static_cast<size_t>(id_bytes));
  return {};
}

const ElfSection* ElfFile::section(std::string_view name) const {
  const auto found = std::find_if(sections_.begin(), sections_.end(),
                                  [&](const ElfSection& section) { return section.name == name; });
  return found == sections_.end() ? nullptr : &*found;
}

Elf_Data* ElfFile::data(const ElfSection& section) const {
  if (section.header.sh_type == SHT_NOBITS || (section.header.sh_flags & SHF_COMPRESSED) != 0)
    return nullptr;
  Elf_Data* data = elf_getdata(section.handle, nullptr);
  return data != nullptr && data->d_buf != nullptr && data->d_size != 0 ? data : nullptr;
}

bool ElfFile::is_code(const ElfSection& section) {
  constexpr uint64_t kWanted = SHF_ALLOC | SHF_EXECINSTR;
  return (section.header.sh_flags & kWanted) == kWanted;
}

std::optional<uint64_t> ElfFile::address_of(uint64_t file_offset) const {
  for (const ElfSegment& segment : segments_) {
    if (file_offset >= segment.offset && file_offset - segment.offset < segment.file_bytes)
      return segment.address + (file_offset - segment.offset);
  }
  return std::nullopt;
}

std::optional<uint64_t> ElfFile::offset_of(uint64_t address) const {
  for (const ElfSegment& segment : segments_) {
    if (address >= segment.address && address - segment.address < segment.file_bytes)
      return segment.offset + (address - segment.address);
  }
  return std::nullopt;
}

}  // namespace aon
