/// ElfFile: a program or library as libelf reads it, opened so that nothing odd hurts: no waiting
/// at a fifo, no directory, no device, any class and byte order. What it hands out points into the
/// file's sections and lives as long as the ElfFile.
/// Thread: one owner.   Cost: open reads headers only, a section is read when asked for. kMapped:
/// who reads it dies by SIGBUS when the file is truncated: for processes that may.
/// Errors: kNotFound, kUnavailable (permission), kInvalid (not a program or library), kDamaged.
#pragma once

#include <gelf.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/unique_fd.h"

namespace aon {

/// One loadable part: bytes [offset, offset + file_bytes) of the file lie at `address`.
struct ElfSegment {
  uint64_t offset = 0;
  uint64_t address = 0;
  uint64_t file_bytes = 0;
};

/// A section by name, type and place.
struct ElfSection {
  std::string_view name;
  Elf_Scn* handle = nullptr;
  GElf_Shdr header{};
};

class ElfFile {
 public:
  enum class Access : uint8_t { kMapped, kRead };
  static Result<ElfFile> open(const std::string& path, Access access = Access::kMapped);
  /// The same of a file's content; `label` stands for the path in messages.
  static Result<ElfFile> from_memory(std::vector<uint8_t> bytes, std::string label);

  Elf* elf() const { return elf_.get(); }
  const std::string& path() const { return path_; }
  int fd() const { return fd_.get(); }  ///< -1: it is from memory
  uint16_t machine() const { return machine_; }
  /// Raw bytes; empty when the file has none.
  const std::string& build_id() const { return build_id_; }
  std::span<const ElfSection> sections() const { return sections_; }
  /// First section of that name, nullptr when there is none.
  const ElfSection* section(std::string_view name) const;
  /// Content of a section in the machine's byte order; nullptr when it has none, or a damaged one.
  Elf_Data* data(const ElfSection& section) const;
  /// True for a section of code.
  static bool is_code(const ElfSection& section);

  /// Address that byte `file_offset` is loaded at, before relocation; nullopt: it is not loaded.
  std::optional<uint64_t> address_of(uint64_t file_offset) const;
  /// The byte of the file that is loaded at `address`; nullopt: none is.
  std::optional<uint64_t> offset_of(uint64_t address) const;

 private:
  struct EndElf {
    void operator()(Elf* elf) const { elf_end(elf); }
  };

  static Result<ElfFile> read(ElfFile file);
  Status read_headers();

  UniqueFd fd_;
  std::vector<uint8_t> bytes_;
  std::unique_ptr<Elf, EndElf> elf_;  // behind what it reads from: goes first
  std::string path_;
  std::string build_id_;
  std::vector<ElfSection> sections_;
  std::vector<ElfSegment> segments_;
  uint16_t machine_ = 0;
};

/// The string that begins at `offset` of a string table; empty when it is not inside.
std::string_view elf_string(const Elf_Data* strings, uint64_t offset);

}  // namespace aon
