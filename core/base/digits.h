/// Numbers for people. Thread: any.
#pragma once

#include <cstdint>
#include <string>

namespace aon {

/// 1234567 as "1 234 567".
inline std::string grouped(uint64_t value) {
  std::string digits = std::to_string(value);
  for (size_t place = digits.size(); place > 3; place -= 3) digits.insert(place - 3, 1, ' ');
  return digits;
}

}  // namespace aon
