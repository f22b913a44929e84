/// Runs a fuzz target without a fuzzer: `target CORPUS [mutations]` runs the seeds, every file in
/// CORPUS and that many mutations of them, from a fixed seed; `target --write CORPUS` writes the
/// seeds there, to start libFuzzer from.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "tests/fuzz/target.h"

namespace {

using aon::fuzz::Bytes;

constexpr uint64_t kSeed = 20240229;
constexpr size_t kMaxInputBytes = 64 * 1024;

/// Changes an input the way parsers dislike: flipped bits, border values, pieces cut, doubled or
/// taken from another input.
class Mutator {
 public:
  explicit Mutator(const std::vector<Bytes>& pool) : pool_(pool), random_(kSeed) {}

  Bytes next() {
    Bytes bytes = pick();
    for (uint64_t steps = 1 + below(4); steps > 0; --steps) mutate(&bytes);
    if (bytes.size() > kMaxInputBytes) bytes.resize(kMaxInputBytes);
    return bytes;
  }

 private:
  uint64_t below(uint64_t limit) { return limit == 0 ? 0 : random_() % limit; }
  const Bytes& pick() { return pool_[below(pool_.size())]; }

  void mutate(Bytes* bytes) {
    constexpr uint64_t kBorders[] = {0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, ~0ull};
    if (bytes->empty()) bytes->push_back(static_cast<uint8_t>(random_()));
    const size_t at = below(bytes->size());
    const auto from = bytes->begin() + static_cast<ptrdiff_t>(at);
    switch (below(6)) {
      case 0:
        *from ^= static_cast<uint8_t>(1u << below(8));
        break;
      case 1:
        *from = static_cast<uint8_t>(random_());
        break;
      case 2: {
        const uint64_t value = kBorders[below(std::size(kBorders))];
        const size_t width = std::min<size_t>(size_t{1} << below(4), bytes->size() - at);
        std::memcpy(bytes->data() + at, &value, width);
        break;
      }
      case 3:
        bytes->erase(from, from + static_cast<ptrdiff_t>(below(bytes->size() - at)));
        break;
      case 4: {
        const Bytes piece(from, from + static_cast<ptrdiff_t>(below(bytes->size() - at)));
        bytes->insert(bytes->begin() + static_cast<ptrdiff_t>(below(bytes->size())), piece.begin(),
                      piece.end());
        break;
      }
      default: {
        const Bytes& other = pick();
        const size_t start = below(other.size());
        bytes->resize(at);
        bytes->insert(bytes->end(), other.begin() + static_cast<ptrdiff_t>(start), other.end());
      }
    }
  }

  const std::vector<Bytes>& pool_;
  std::mt19937_64 random_;
};

int write_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  size_t number = 0;
  for (const Bytes& seed : aon::fuzz::seeds()) {
    std::ofstream file(folder / ("seed-" + std::to_string(number++)), std::ios::binary);
    file.write(reinterpret_cast<const char*>(seed.data()),
               static_cast<std::streamsize>(seed.size()));
    if (!file) return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--write") == 0) return write_seeds(argv[2]);
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s CORPUS [mutations] | --write CORPUS\n", argv[0]);
    return 2;
  }
  std::vector<Bytes> pool = aon::fuzz::seeds();
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1], error)) {
    std::ifstream file(entry.path(), std::ios::binary);
    pool.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  if (error) {
    std::fprintf(stderr, "%s: %s\n", argv[1], error.message().c_str());
    return 2;
  }
  pool.emplace_back();
  for (const Bytes& input : pool) LLVMFuzzerTestOneInput(input.data(), input.size());
  const uint64_t mutations = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  Mutator mutator(pool);
  for (uint64_t i = 0; i < mutations; ++i) {
    const Bytes input = mutator.next();
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("%zu inputs, %llu mutations\n", pool.size(),
              static_cast<unsigned long long>(mutations));
  return 0;
}
