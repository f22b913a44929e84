// plugins/mpi/channels.h: one that gets no number moves no other.
#include "plugins/mpi/channels.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/unit/sanitizer.h"

namespace aon::mpi {
namespace {

constexpr uint32_t kWorld = 1;
constexpr uint64_t kPeerTag = 7;

/// No mmap() succeeds while it lives.
class NoMemory {
 public:
  NoMemory() {
    getrlimit(RLIMIT_AS, &before_);
    rlimit none = before_;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_AS, &none);
  }
  ~NoMemory() { setrlimit(RLIMIT_AS, &before_); }
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;

 private:
  rlimit before_;
};

TEST(Channels, count_sends_and_receives_of_each_envelope) {
  static Channels channels;
  EXPECT_EQ(channels.next(kWorld, kPeerTag, true), 1);
  EXPECT_EQ(channels.next(kWorld, kPeerTag, false), 1);
  EXPECT_EQ(channels.next(kWorld, kPeerTag, true), 2);
  EXPECT_EQ(channels.next(kWorld + 1, kPeerTag, true), 1);
  EXPECT_EQ(channels.next(kWorld, kPeerTag + 1, true), 1);
  EXPECT_EQ(channels.next(kWorld, kPeerTag, true), 3);
}

TEST(Channels, beyond_what_a_number_has_room_for_have_none) {
  static Channels channels;
  for (uint32_t i = 1; i <= UINT16_MAX; ++i) {
    ASSERT_EQ(channels.next(kWorld, kPeerTag, true), i);
  }
  EXPECT_EQ(channels.next(kWorld, kPeerTag, true), 0);
  EXPECT_EQ(channels.next(kWorld, kPeerTag, true), 0);
}

TEST(Channels, of_an_envelope_too_many_have_none) {
  static Channels channels;
  for (uint64_t tag = 0; tag < Channels::kMaxEnvelopes; ++tag) {
    ASSERT_EQ(channels.next(kWorld, tag, true), 1);
  }
  EXPECT_EQ(channels.next(kWorld, Channels::kMaxEnvelopes, true), 0);
  EXPECT_EQ(channels.next(kWorld, Channels::kMaxEnvelopes, true), 0);
  EXPECT_EQ(channels.next(kWorld, 0, true), 2);
}

TEST(Channels, keep_their_numbers_where_there_was_no_memory_for_one) {
#ifdef AON_TEST_IS_SANITIZED
  GTEST_SKIP() << "a sanitizer needs memory of its own";
#endif
  static Channels channels;
  ASSERT_EQ(channels.next(kWorld, 0, true), 1);  // the first table
  uint64_t refused = 1;
  uint16_t second = 0;
  {
    const NoMemory no_memory;
    while (refused < 1000 && channels.next(kWorld, refused, true) != 0) ++refused;
    second = channels.next(kWorld, 0, true);
  }
  ASSERT_LT(refused, 1000u);
  EXPECT_EQ(second, 2);
  EXPECT_EQ(channels.next(kWorld, 0, true), 3);
  EXPECT_EQ(channels.next(kWorld, refused, true), 0) << "its second, not the other side's first";
}

}  // namespace
}  // namespace aon::mpi
