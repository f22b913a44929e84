/// The text file of JIT compilers: parsing ends, and a name that is found is one of the file.
#include <algorithm>
#include <string>
#include <vector>

#include "plugins/perf/sampling/perf_map.h"
#include "tests/fuzz/target.h"

namespace aon::fuzz {

std::vector<Bytes> seeds() {
  std::vector<Bytes> inputs;
  for (const std::string text :
       {"7f0010000000 40 py::solve:/a b/solve.py\n7f0010000040 20 LazyCompile:~step :3\n",
        "0x1000 0x100 old\r\n1040 20 new\n1000 10 newest", "zz 10 a\n1000 0 c\nfff0 ffff d\n"})
    inputs.emplace_back(text.begin(), text.end());
  return inputs;
}

}  // namespace aon::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  using namespace aon;
  const std::string text(reinterpret_cast<const char*>(data), bytes);
  const std::vector<uint64_t> addresses = {0, 0x1000, 0x1045, ~uint64_t{0}};
  perf::PerfMap map(addresses);
  const size_t piece_bytes = bytes % 7 + 1;
  for (size_t at = 0; at < bytes; at += piece_bytes) map.add(text.substr(at, piece_bytes));
  map.finish();
  fuzz::check(map.range_count() <= addresses.size());
  for (const uint64_t address : addresses) {
    const std::string_view name = map.find(address);
    fuzz::check(name.empty() || text.find(name) != std::string::npos);
  }
  for (const auto& symbol : map.symbols()) {
    fuzz::check(std::any_of(addresses.begin(), addresses.end(), [&](uint64_t address) {
      return symbol.start <= address && address < symbol.end;
    }));
  }
  return 0;
}
