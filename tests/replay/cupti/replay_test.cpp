// Buffers of CUPTI as a process got them (aon-run --record-fixture) -> work as text, compared with
// NAME.expected beside NAME.bin. AON_UPDATE_FIXTURES=1 writes the text anew.
//
// Steps from record to record are CUPTI's own where it is installed and of the fixture's version or
// later; those of CUDA 13.0 are known without it. `made-...` come from tests/fake_cuda; all others
// are of a device.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "plugins/cupti/library.h"
#include "plugins/cupti/parser.h"
#include "tests/fake_cuda/cupti_records.h"
#include "tests/unit/cupti/kept_fixture.h"
#include "tests/unit/cupti/real_cupti.h"

// No search for leaks: with NVIDIA's library in the process LeakSanitizer's own thread has crashed
// on one machine ("Tracer caught signal 11") after all had passed. tests/unit/cupti searches.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" [[gnu::visibility("default")]] int __lsan_is_turned_off();
int __lsan_is_turned_off() { return 1; }
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

extern const char* const kFixtures;  // the build writes it

namespace aon::cupti {
namespace {

namespace fs = std::filesystem;
using test::KeptFixture;
using NextRecord = Code (*)(uint8_t* buffer, size_t valid_bytes, uint8_t** record);

constexpr Code kEndOfBuffer = 12;

/// Null: this CUPTI is not there, or is older than the fixture.
NextRecord real_steps(uint32_t version) {
  const char* name = test::find_real_cupti();
  if (name == nullptr) return nullptr;
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  const auto get_version = reinterpret_cast<Code (*)(uint32_t*)>(dlsym(library, "cuptiGetVersion"));
  uint32_t installed = 0;
  if (get_version(&installed) != kSuccess || installed < version) return nullptr;
  return reinterpret_cast<NextRecord>(dlsym(library, "cuptiActivityGetNextRecord"));
}

NextRecord known_steps(uint32_t version) {
  return version / 100 == 1300 ? fake::next_record : nullptr;
}

void write_shape(const Work& work, std::ostringstream* text) {
  const KernelShape shape = unpack_shape(work.grid, work.block, work.registers, work.shared_bytes);
  const auto write = [&](const char* what, const uint32_t(&count)[3]) {
    *text << ' ' << what << ' ' << count[0] << 'x' << count[1] << 'x' << count[2];
  };
  write("grid", shape.grid);
  write("block", shape.block);
  *text << " registers " << shape.registers << " shared " << shape.shared_bytes;
}

void write_work(const Work& work, uint64_t first_ns, const KeptFixture& kept,
                std::ostringstream* text) {
  static constexpr const char* kRows[] = {"stream", "calls", "synchronization", "overhead", "gaps"};
  static constexpr const char* kOperations[] = {"kernel", "copy", "set", "graph", "wait", "other"};
  *text << work.start_ns - first_ns << " +" << work.end_ns - work.start_ns << ' '
        << kRows[static_cast<size_t>(work.row)] << ' '
        << kOperations[static_cast<size_t>(work.operation)] << " device " << work.device
        << " context " << work.context << " stream "
        << (work.row == Row::kCalls || work.row == Row::kOverhead ? 0 : work.stream) << " call "
        << work.correlation;
  if (work.bytes != 0) *text << " bytes " << work.bytes;
  if (work.graph != 0) *text << " graph " << work.graph << '/' << work.graph_node;
  if (work.block != 0) write_shape(work, text);
  if (work.function != 0) *text << " function " << work.function;
  const auto name = kept.names.find(reinterpret_cast<uintptr_t>(work.name));
  if (work.name != nullptr) *text << ' ' << (name != kept.names.end() ? name->second : "(no name)");
  if (work.label != nullptr) *text << ' ' << work.label;
  *text << '\n';
}

/// Everything but what differs from run to run of the same program: time begins with the first.
std::string text_of(const KeptFixture& kept, NextRecord next) {
  std::vector<Work> all;
  uint32_t others[4] = {};
  for (const std::vector<uint8_t>& bytes : kept.buffers) {
    std::vector<uint64_t> aligned(bytes.size() / 8 + 1);
    auto* buffer = reinterpret_cast<uint8_t*>(aligned.data());
    std::copy(bytes.begin(), bytes.end(), buffer);
    uint8_t* record = nullptr;
    Code code;
    while ((code = next(buffer, bytes.size(), &record)) == kSuccess) {
      Work work;
      const Parsed parsed = parse(record, quirks_of(kept.version), &work);
      ++others[static_cast<size_t>(parsed)];
      if (parsed == Parsed::kWork) all.push_back(work);
    }
    EXPECT_EQ(code, kEndOfBuffer);
  }
  uint64_t first_ns = UINT64_MAX;
  for (const Work& work : all) first_ns = std::min(first_ns, work.start_ns);
  std::ostringstream text;
  text << "CUPTI " << kept.version << ", " << kept.buffers.size() << " buffers, "
       << kept.names.size() << " names, " << others[0] << " pieces of work, " << others[1]
       << " of no interest, " << others[2] << " without times, " << others[3] << " damaged\n";
  for (const Work& work : all) write_work(work, first_ns, kept, &text);
  return text.str();
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// False: nothing here can step over records of its version.
bool replay(const fs::path& path) {
  const KeptFixture kept = test::read_fixture(path);
  EXPECT_NE(kept.version, 0u) << path << " is no fixture";
  const NextRecord known = known_steps(kept.version);
  const NextRecord real = real_steps(kept.version);
  if (known == nullptr && real == nullptr) return false;
  const std::string text = text_of(kept, known != nullptr ? known : real);
  if (known != nullptr && real != nullptr) {
    EXPECT_EQ(text, text_of(kept, real)) << path;
  }
  const fs::path expected = fs::path(path).replace_extension(".expected");
  if (getenv("AON_UPDATE_FIXTURES") != nullptr) std::ofstream(expected) << text;
  EXPECT_EQ(text, read_file(expected)) << path;
  return true;
}

TEST(CuptiReplay, gives_the_work_that_was_checked_by_hand) {
  int count = 0;
  std::string left_out;
  for (const auto& entry : fs::directory_iterator(kFixtures)) {
    if (entry.path().extension() != ".bin") continue;
    if (replay(entry.path())) {
      ++count;
    } else {
      left_out += " " + entry.path().filename().string();
    }
  }
  EXPECT_GE(count, 1);
  if (!left_out.empty()) GTEST_SKIP() << "no libcupti of the version of" << left_out;
}

TEST(CuptiReplay, a_fixture_that_is_cut_off_anywhere_ends_there) {
  const std::string whole = read_file(fs::path(kFixtures) / "made-two-streams.bin");
  ASSERT_GT(whole.size(), 1000u);
  const fs::path path = fs::path(testing::TempDir()) / "cut.bin";
  for (size_t size = 0; size < whole.size(); size += 97) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    EXPECT_LE(test::read_fixture(path).buffers.size(), 8u);
  }
}

}  // namespace
}  // namespace aon::cupti
