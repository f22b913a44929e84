/// The test's own idea of where a file's addresses lie in it, from the program headers as
/// `readelf -lW` prints them; of a file that readelf does not understand every offset is the
/// address. Thread: any.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace aon::symbols::test {

class Segments {
 public:
  explicit Segments(const std::string& path) {
    FILE* pipe = popen(("readelf -lW '" + path + "' 2>/dev/null").c_str(), "r");
    char line[512];
    while (pipe != nullptr && std::fgets(line, sizeof(line), pipe) != nullptr) {
      unsigned long long offset = 0, address = 0, bytes = 0;
      if (std::sscanf(line, " LOAD %llx %llx %*x %llx", &offset, &address, &bytes) == 3)
        parts_.push_back({offset, address, bytes});
    }
    if (pipe != nullptr) pclose(pipe);
  }
  uint64_t offset_of(uint64_t address) const {
    for (const Part& part : parts_)
      if (address >= part.address && address - part.address < part.bytes)
        return address - part.address + part.offset;
    return address;
  }

 private:
  struct Part {
    uint64_t offset, address, bytes;
  };
  std::vector<Part> parts_;
};

}  // namespace aon::symbols::test
