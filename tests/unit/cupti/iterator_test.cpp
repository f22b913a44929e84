// The real cuptiActivityGetNextRecord() steps over records made by hand: what we take for their
// lengths and kinds is what CUPTI takes. It needs no driver.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <vector>

#include "plugins/cupti/interface.h"
#include "plugins/cupti/parser.h"
#include "tests/unit/cupti/made_record.h"
#include "tests/unit/cupti/real_cupti.h"

namespace aon::cupti {
namespace {

using NextRecord = Code (*)(uint8_t* buffer, size_t valid_bytes, uint8_t** record);

NextRecord real_iterator() {
  const char* name = test::find_real_cupti();
  if (name == nullptr) return nullptr;
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<NextRecord>(dlsym(library, "cuptiActivityGetNextRecord"));
}

TEST(Iterator, steps_over_records_of_all_kinds) {
  const NextRecord next = real_iterator();
  if (next == nullptr) GTEST_SKIP() << "no libcupti.so.13: install CUDA's CUPTI";
  std::vector<uint8_t> records;
  const auto add = [&](Kind kind, size_t byte_count) {
    const test::MadeRecord record(kind, byte_count);
    records.insert(records.end(), record.bytes().begin(), record.bytes().end());
  };
  const std::pair<Kind, size_t> kinds[] = {{Kind::kConcurrentKernel, test::kKernelBytes},
                                           {Kind::kMemcpy, test::kCopyBytes},
                                           {Kind::kMemcpy2, test::kCopyBytes},
                                           {Kind::kMemset, test::kSetBytes},
                                           {Kind::kDriver, test::kCallBytes},
                                           {Kind::kRuntime, test::kCallBytes},
                                           {Kind::kGraphTrace, test::kOtherBytes},
                                           {Kind::kSynchronization, test::kOtherBytes},
                                           {Kind::kOverhead, test::kOtherBytes},
                                           {Kind::kExternalCorrelation, 24},
                                           {Kind::kConcurrentKernel, test::kKernelBytes}};
  for (const auto& [kind, byte_count] : kinds) add(kind, byte_count);
  // CUPTI wants eight-byte alignment.
  std::vector<uint64_t> aligned(records.size() / 8 + 1);
  auto* buffer = reinterpret_cast<uint8_t*>(aligned.data());
  memcpy(buffer, records.data(), records.size());
  uint8_t* record = nullptr;
  for (const auto& [kind, byte_count] : kinds) {
    ASSERT_EQ(next(buffer, records.size(), &record), kSuccess);
    Kind found;
    memcpy(&found, record, sizeof found);
    EXPECT_EQ(found, kind);
  }
  EXPECT_EQ(next(buffer, records.size(), &record), 12) << "CUPTI_ERROR_MAX_LIMIT_REACHED";
}

}  // namespace
}  // namespace aon::cupti
