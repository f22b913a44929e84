/// A file of plugins/cupti/fixture.h in memory. What is damaged ends it.
#pragma once

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "plugins/cupti/fixture.h"

namespace aon::cupti::test {

struct KeptFixture {
  uint32_t version = 0;                   ///< 0: it is none
  std::map<uint64_t, std::string> names;  ///< by address
  std::vector<std::vector<uint8_t>> buffers;
};

template <class T>
T value_at(const std::string& bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

inline KeptFixture read_fixture(const std::filesystem::path& path) {
  constexpr size_t kHeadBytes = 16, kPartBytes = 8, kAddressBytes = 8;
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  KeptFixture kept;
  const std::string magic(Fixture::kMagic, sizeof Fixture::kMagic);
  if (bytes.size() < kHeadBytes || bytes.compare(0, magic.size(), magic) != 0) return kept;
  kept.version = value_at<uint32_t>(bytes, magic.size());
  for (size_t at = kHeadBytes; at + kPartBytes <= bytes.size();) {
    const auto part = static_cast<Fixture::Part>(value_at<uint32_t>(bytes, at));
    const size_t size = value_at<uint32_t>(bytes, at + 4);
    at += kPartBytes;
    if (size > bytes.size() - at) break;
    if (part == Fixture::Part::kBuffer) {
      kept.buffers.emplace_back(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                                bytes.begin() + static_cast<std::ptrdiff_t>(at + size));
    } else if (part == Fixture::Part::kName && size > kAddressBytes) {
      const std::string text = bytes.substr(at + kAddressBytes, size - kAddressBytes);
      kept.names[value_at<uint64_t>(bytes, at)] = text.c_str();
    }
    at += std::min((size + 7) / 8 * 8, bytes.size() - at);
  }
  return kept;
}

}  // namespace aon::cupti::test
