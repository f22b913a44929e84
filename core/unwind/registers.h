/// The registers of a thread that unwinding on x86-64 knows: the instruction and stack pointers and
/// what a called function must keep. Numbers are DWARF's (x86-64 psABI, "DWARF register number
/// mapping"). Thread: a value.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace aon::unwind {

constexpr int kBx = 3, kBp = 6, kSp = 7, kR12 = 12, kR13 = 13, kR14 = 14, kR15 = 15, kIp = 16;
constexpr int kRegisterCount = 17;
/// The registers that frames are asked for; of the others nothing is known in a caller.
constexpr std::array<int, 8> kFollowed = {kBx, kBp, kSp, kR12, kR13, kR14, kR15, kIp};

class Registers {
 public:
  void set(int number, std::optional<uint64_t> value) {
    if (number >= 0 && number < kRegisterCount) values_[static_cast<size_t>(number)] = value;
  }
  std::optional<uint64_t> get(int number) const {
    return number >= 0 && number < kRegisterCount ? values_[static_cast<size_t>(number)]
                                                  : std::nullopt;
  }

 private:
  std::array<std::optional<uint64_t>, kRegisterCount> values_;
};

/// A copy of a part of a thread's stack: `bytes` from address `begin` on.
struct StackCopy {
  uint64_t begin = 0;
  const uint8_t* bytes = nullptr;
  uint64_t byte_count = 0;

  std::optional<uint64_t> read(uint64_t address) const {
    if (address < begin || byte_count < sizeof(uint64_t) ||
        address - begin > byte_count - sizeof(uint64_t))
      return std::nullopt;
    uint64_t value;
    __builtin_memcpy(&value, bytes + (address - begin), sizeof(value));
    return value;
  }
};

}  // namespace aon::unwind
