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

/// Two kernels with two calls between them.
std::vector<uint64_t> four_records(size_t* byte_count) {
  std::vector<uint8_t> records;
  for (const auto& [kind, bytes] :
       {std::pair(Kind::kConcurrentKernel, test::kKernelBytes),
        std::pair(Kind::kDriver, test::kCallBytes), std::pair(Kind::kRuntime, test::kCallBytes),
        std::pair(Kind::kConcurrentKernel, test::kKernelBytes)}) {
    const test::MadeRecord record(kind, bytes);
    records.insert(records.end(), record.bytes().begin(), record.bytes().end());
  }
  *byte_count = records.size();
  std::vector<uint64_t> aligned(records.size() / 8 + 1);
  memcpy(aligned.data(), records.data(), records.size());
  return aligned;
}

/// What was read may be cleared before the rest is (Backend::looks_at_one_record).
TEST(Iterator, looks_at_no_other_record_than_the_one_it_steps_from) {
  const NextRecord next = real_iterator();
  if (next == nullptr) GTEST_SKIP() << "no libcupti.so.13: install CUDA's CUPTI";
  size_t byte_count = 0;
  std::vector<uint64_t> records = four_records(&byte_count);
  auto* buffer = reinterpret_cast<uint8_t*>(records.data());
  uint8_t* record = nullptr;
  for (const size_t offset : {size_t{0}, test::kKernelBytes, test::kKernelBytes + test::kCallBytes,
                              test::kKernelBytes + 2 * test::kCallBytes}) {
    ASSERT_EQ(next(buffer, byte_count, &record), kSuccess);
    EXPECT_EQ(record, buffer + offset);
    memset(buffer, 0, offset);
  }
  EXPECT_EQ(next(buffer, byte_count, &record), 12) << "CUPTI_ERROR_MAX_LIMIT_REACHED";
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
                                           {Kind::kExternalCorrelation, test::kExternalBytes},
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

TEST(Iterator, gives_external_ids_before_their_call) {
  const NextRecord next = real_iterator();
  if (next == nullptr) GTEST_SKIP() << "no libcupti.so.13: install CUDA's CUPTI";
  test::MadeRecord call(Kind::kDriver, test::kCallBytes);
  call.set(api::kCorrelation, uint32_t{99});
  std::vector<uint8_t> records;
  for (const test::MadeRecord& record :
       {test::made_external_id(1, UINT64_MAX, 99), test::made_external_id(5, 1ull << 40, 99), call})
    records.insert(records.end(), record.bytes().begin(), record.bytes().end());
  std::vector<uint64_t> aligned(records.size() / 8 + 1);
  auto* buffer = reinterpret_cast<uint8_t*>(aligned.data());
  memcpy(buffer, records.data(), records.size());
  uint8_t* record = nullptr;
  for (const auto& [kind, number] : {std::pair(ExternalKind::kUnknown, uint64_t{UINT64_MAX}),
                                     std::pair(ExternalKind::kCustom2, uint64_t{1} << 40)}) {
    ASSERT_EQ(next(buffer, records.size(), &record), kSuccess);
    ASSERT_EQ(kind_of(record), Kind::kExternalCorrelation);
    ExternalId id;
    ASSERT_TRUE(parse_external_id(record, &id));
    EXPECT_EQ(id.kind, kind);
    EXPECT_EQ(id.id, number);
    EXPECT_EQ(id.correlation, 99u);
  }
  ASSERT_EQ(next(buffer, records.size(), &record), kSuccess);
  EXPECT_EQ(kind_of(record), Kind::kDriver);
}

/// So the length of a record is what it takes to be given, and behind one that nobody knows reading
/// can begin anew.
TEST(Iterator, gives_a_record_where_it_is_whole_and_ends_at_one_of_an_unknown_kind) {
  const NextRecord next = real_iterator();
  if (next == nullptr) GTEST_SKIP() << "no libcupti.so.13: install CUDA's CUPTI";
  constexpr size_t kStrangeBytes = 72;
  constexpr auto kStrange = static_cast<Kind>(201);
  std::vector<uint8_t> records;
  for (const auto& [kind, bytes] :
       {std::pair(Kind::kConcurrentKernel, test::kKernelBytes), std::pair(kStrange, kStrangeBytes),
        std::pair(Kind::kDriver, test::kCallBytes)}) {
    const test::MadeRecord record(kind, bytes);
    records.insert(records.end(), record.bytes().begin(), record.bytes().end());
  }
  std::vector<uint64_t> aligned(records.size() / 8 + 1);
  memcpy(aligned.data(), records.data(), records.size());
  auto* buffer = reinterpret_cast<uint8_t*>(aligned.data());
  for (size_t bytes = 8; bytes < test::kKernelBytes; bytes += 8) {
    uint8_t* record = nullptr;
    EXPECT_NE(next(buffer, bytes, &record), kSuccess) << bytes;
  }
  uint8_t* record = nullptr;
  ASSERT_EQ(next(buffer, test::kKernelBytes, &record), kSuccess);
  const Code code = next(buffer, records.size(), &record);
  EXPECT_NE(code, kSuccess);
  EXPECT_NE(code, 12) << "that would be the end of the buffer";
  record = nullptr;
  uint8_t* behind = buffer + test::kKernelBytes + kStrangeBytes;
  EXPECT_EQ(next(behind, test::kCallBytes, &record), kSuccess);
  EXPECT_EQ(record, behind);
}

}  // namespace
}  // namespace aon::cupti
