// Operations of NCCL whose times on the GPU are taken away.

#include "writers/assemble/nccl_overwritten.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/nccl_record.h"

namespace aon::writers {
namespace {

constexpr uint32_t kComm = 5;

Record operation(uint32_t call, uint32_t comm = kComm) {
  Record record = test::nccl_record(2, 100, 160, kNcclGpuTimed, 4096, comm);
  record.words[1] = record.words[1] >> 32 << 32 | call;
  return record;
}

Record overwritten(uint64_t first, uint64_t last) {
  Record record{};
  record.head.kind = RecordKind::kNcclCall;
  record.head.slot_count = kNcclOverwrittenSlots;
  record.head.a32 = kComm;
  record.head.a64 = last << 32 | first;
  return record;
}

/// "t" timed, "-" overwritten, of calls 0 to 9.
std::string told(NcclOverwritten* all, uint32_t comm = kComm) {
  std::vector<Record> records;
  for (uint32_t call = 0; call < 10; ++call) records.push_back(operation(call, comm));
  std::string text;
  for (const Record& record : all->correct(records)) {
    const auto flags = static_cast<uint32_t>(record.words[5] >> 32);
    text += (flags & kNcclGpuTimed) != 0 ? "t" : (flags & kNcclOverwritten) != 0 ? "-" : "?";
  }
  return text;
}

TEST(NcclOverwritten, lose_their_times_and_others_keep_them) {
  NcclOverwritten all;
  for (const Record& record : {overwritten(6, 7), overwritten(1, 2), overwritten(2, 3)})
    all.add(record);
  all.sort();
  EXPECT_EQ(told(&all), "t---tt--tt");
  EXPECT_EQ(told(&all, kComm + 1), "tttttttttt");
  all.clear();
  EXPECT_EQ(told(&all), "tttttttttt");
}

/// Of the count of calls a record of them has the low half.
TEST(NcclOverwritten, are_found_where_the_count_of_calls_wraps) {
  NcclOverwritten all;
  Record across = overwritten(UINT32_MAX - 1, 1);
  ASSERT_TRUE(is_nccl_overwritten(across.head));
  all.add(across);
  all.sort();
  EXPECT_EQ(told(&all), "--tttttttt");
  const Record last = operation(UINT32_MAX);
  EXPECT_NE(all.correct({&last, 1})[0].words[5] >> 32 & kNcclOverwritten, 0u);
}

TEST(NcclOverwritten, wild_ranges_do_no_harm) {
  NcclOverwritten all;
  all.add(overwritten(5, 4));
  all.add(overwritten(8, UINT32_MAX));
  all.add(overwritten(9, 9));
  all.sort();
  EXPECT_EQ(told(&all), "tttttttt--");
}

TEST(NcclOverwritten, what_never_ran_on_the_gpu_stays_as_it_is) {
  NcclOverwritten all;
  all.add(overwritten(0, 9));
  all.sort();
  Record untimed = operation(3);
  untimed.words[5] &= 0xffffffff;
  EXPECT_EQ(all.correct({&untimed, 1})[0].words[5], untimed.words[5]);
}

}  // namespace
}  // namespace aon::writers
