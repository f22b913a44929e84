#include "writers/symbols/function_ranges.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

namespace aon::symbols {

namespace {

/// Takes values off the beginning of what a description holds.
struct Cursor {
  const uint8_t* at;
  const uint8_t* end;

  template <typename T>
  std::optional<uint64_t> take() {
    if (static_cast<size_t>(end - at) < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, at, sizeof value);
    at += sizeof value;
    return static_cast<uint64_t>(static_cast<int64_t>(value));
  }
  std::optional<uint64_t> take(uint8_t format, uint8_t class_bits) {
    switch (format) {
      case DW_EH_PE_absptr:
        return class_bits == ELFCLASS32 ? take<uint32_t>() : take<uint64_t>();
      case DW_EH_PE_udata4:
        return take<uint32_t>();
      case DW_EH_PE_sdata4:
        return take<int32_t>();
      case DW_EH_PE_udata8:
      case DW_EH_PE_sdata8:
        return take<uint64_t>();
      default:
        return std::nullopt;
    }
  }
};

/// How the descriptions of a CIE write addresses: the byte of its augmentation 'R'.
uint8_t pointer_encoding(const Dwarf_CIE& cie) {
  const uint8_t* at = cie.augmentation_data;
  const uint8_t* const end = at + cie.augmentation_data_size;
  if (cie.augmentation == nullptr || cie.augmentation[0] != 'z') return DW_EH_PE_absptr;
  for (const char* letter = cie.augmentation + 1; *letter != 0 && at < end; ++letter) {
    if (*letter == 'R') return *at;
    if (*letter == 'L') {
      ++at;
    } else if (*letter == 'P') {
      const uint8_t format = *at++ & 0x0f;
      const bool is_4 = format == DW_EH_PE_udata4 || format == DW_EH_PE_sdata4;
      const bool is_8 = format == DW_EH_PE_udata8 || format == DW_EH_PE_sdata8;
      if (!is_4 && !is_8) break;  // absptr: where it may lie is said by the class, no compiler does
      at += std::min<ptrdiff_t>(is_8 ? 8 : 4, end - at);
    } else if (*letter != 'S' && *letter != 'B') {
      break;
    }
  }
  return DW_EH_PE_omit;
}

/// The entries of an .eh_frame in this machine's byte order.
class Entries {
 public:
  Entries(const ElfFile& file, const ElfSection& section, Elf_Data* data)
      : ident_(reinterpret_cast<const unsigned char*>(elf_getident(file.elf(), nullptr))),
        data_(data),
        address_(section.header.sh_addr) {}

  bool is_readable() const {
    constexpr uint8_t kOurs =
        std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
    return ident_ != nullptr && ident_[EI_DATA] == kOurs;
  }

  /// Steps to the next entry; false at the end and at a damaged one.
  bool next(Dwarf_CFI_Entry* entry) {
    const Dwarf_Off at = next_;
    return dwarf_next_cfi(ident_, data_, true, at, &next_, entry) == 0 && next_ > at;
  }

  /// First address and size of the code that `fde` describes.
  std::optional<std::pair<uint64_t, uint64_t>> range_of(const Dwarf_FDE& fde) {
    const uint8_t encoding = encoding_of(fde.CIE_pointer);
    const uint8_t base = encoding & 0x70, format = encoding & 0x0f;
    if (encoding == DW_EH_PE_omit || (base != DW_EH_PE_absptr && base != DW_EH_PE_pcrel))
      return std::nullopt;
    const auto* begin = static_cast<const uint8_t*>(data_->d_buf);
    const uint64_t place = address_ + static_cast<uint64_t>(fde.start - begin);
    Cursor cursor{fde.start, fde.end};
    const std::optional<uint64_t> start = cursor.take(format, ident_[EI_CLASS]);
    const std::optional<uint64_t> size = cursor.take(format & 0x07, ident_[EI_CLASS]);
    if (!start || !size) return std::nullopt;
    return std::pair(*start + (base == DW_EH_PE_pcrel ? place : 0), *size);
  }

 private:
  /// Of the CIE at `offset`; most files have one or two.
  uint8_t encoding_of(Dwarf_Off offset) {
    if (offset == known_cie_) return known_encoding_;
    known_cie_ = offset;
    Dwarf_CFI_Entry cie;
    Dwarf_Off behind = 0;
    const bool is_cie =
        dwarf_next_cfi(ident_, data_, true, offset, &behind, &cie) == 0 && dwarf_cfi_cie_p(&cie);
    known_encoding_ = is_cie ? pointer_encoding(cie.cie) : uint8_t{DW_EH_PE_omit};
    return known_encoding_;
  }

  const unsigned char* ident_;
  Elf_Data* data_;
  uint64_t address_;
  Dwarf_Off next_ = 0;
  Dwarf_Off known_cie_ = std::numeric_limits<Dwarf_Off>::max();
  uint8_t known_encoding_ = DW_EH_PE_omit;
};

}  // namespace

void FunctionRanges::add(const ElfFile& file) {
  const ElfSection* section = file.section(".eh_frame");
  Elf_Data* data = section != nullptr ? file.data(*section) : nullptr;
  if (data == nullptr) return;
  Entries entries(file, *section, data);
  Dwarf_CFI_Entry entry;
  while (entries.is_readable() && entries.next(&entry)) {
    if (dwarf_cfi_cie_p(&entry)) continue;
    const auto range = entries.range_of(entry.fde);
    if (range && range->first + range->second > range->first)
      ranges_.push_back({range->first, range->first + range->second});
  }
  std::sort(ranges_.begin(), ranges_.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
}

std::optional<uint64_t> FunctionRanges::begin_of(uint64_t address) const {
  const auto next =
      std::upper_bound(ranges_.begin(), ranges_.end(), address,
                       [](uint64_t a, const Range& range) { return a < range.begin; });
  if (next == ranges_.begin() || address >= (next - 1)->end) return std::nullopt;
  return (next - 1)->begin;
}

}  // namespace aon::symbols
