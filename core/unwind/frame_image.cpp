#include "core/unwind/frame_image.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "core/base/file.h"

namespace aon::unwind {

namespace {

struct Part {
  uint64_t begin = 0;
  uint64_t byte_count = 0;
};

/// Tables that say where everything is.
std::vector<Part> headers_of(Elf* elf) {
  GElf_Ehdr header;
  size_t segment_count = 0, section_count = 0;
  if (gelf_getehdr(elf, &header) == nullptr || elf_getphdrnum(elf, &segment_count) != 0 ||
      elf_getshdrnum(elf, &section_count) != 0)
    return {};
  return {{0, header.e_ehsize},
          {header.e_phoff, segment_count * header.e_phentsize},
          {header.e_shoff, section_count * header.e_shentsize}};
}

/// The loaded part that byte `at` of the file is in; as large as nothing where there is none.
Part loaded_around(Elf* elf, size_t segment_count, uint64_t at) {
  for (size_t i = 0; i < segment_count; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) break;
    if (segment.p_type == PT_LOAD && at >= segment.p_offset &&
        at - segment.p_offset < segment.p_filesz)
      return {segment.p_offset, segment.p_filesz};
  }
  return {};
}

/// Call frame information, and the names of the sections, by which it may have to be found. Without
/// sections only the part of the file is known that it is loaded with.
std::vector<Part> frames_of(const ElfFile& file) {
  Elf* elf = file.elf();
  std::vector<Part> parts;
  bool has_frames = false;
  for (const ElfSection& section : file.sections()) {
    const bool is_frames = section.name == ".eh_frame";
    const bool is_wanted =
        is_frames || section.name == ".eh_frame_hdr" || section.name == ".shstrtab";
    if (!is_wanted || section.header.sh_type == SHT_NOBITS) continue;
    parts.push_back({section.header.sh_offset, section.header.sh_size});
    has_frames |= is_frames;
  }
  size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) return {};
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) break;
    if (segment.p_type != PT_GNU_EH_FRAME) continue;
    parts.push_back({segment.p_offset, segment.p_filesz});
    if (!has_frames) parts.push_back(loaded_around(elf, count, segment.p_offset));
    has_frames = true;
  }
  return has_frames ? parts : std::vector<Part>();
}

}  // namespace

void UnmapImage::operator()(void* memory) const { ::munmap(memory, byte_count); }

Result<FrameImage> FrameImage::copy(const ElfFile& file, uint64_t max_bytes) {
  std::vector<Part> parts = frames_of(file);
  if (parts.empty())
    return Error{Code::kUnavailable,
                 file.path() + ": has no .eh_frame; build with -fasynchronous-unwind-tables"};
  const std::vector<Part> headers = headers_of(file.elf());
  parts.insert(parts.begin(), headers.begin(), headers.end());
  FrameImage image;
  uint64_t end = 0;
  for (const Part& part : parts) {
    const uint64_t part_end = part.begin + part.byte_count;
    if (part_end < part.begin)
      return Error{Code::kDamaged, file.path() + ": damaged ELF file: its headers"};
    const bool has_room = part.byte_count <= max_bytes - image.copied_bytes_;
    if (!has_room)
      return Error{Code::kUnavailable,
                   file.path() + ": its call frame information is larger than the room for it"};
    image.copied_bytes_ += part.byte_count;
    end = std::max(end, part_end);
  }
  void* memory = ::mmap(nullptr, end, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return errno_error("no memory for", file.path(), errno);
  image.memory_ = std::unique_ptr<void, UnmapImage>(memory, UnmapImage{end});
  for (const Part& part : parts) {
    char* place = static_cast<char*>(memory) + part.begin;
    const Result<size_t> count = read_at(file.fd(), place, part.byte_count, part.begin);
    if (!count) return Error{count.error().code, file.path() + ": " + count.error().message};
    if (*count != part.byte_count)
      return Error{Code::kDamaged, file.path() + ": is shorter than its headers say"};
  }
  image.elf_.reset(elf_memory(static_cast<char*>(memory), end));
  if (!image.elf_) return Error{Code::kDamaged, file.path() + ": damaged ELF file"};
  return image;
}

}  // namespace aon::unwind
