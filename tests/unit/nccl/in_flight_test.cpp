// Operations that never ended, found from records in any order.

#include "writers/nccl/in_flight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace aon::writers::nccl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

NcclOperation told(uint64_t call, bool is_in_flight, uint32_t communicator = 1) {
  NcclOperation operation;
  operation.communicator = communicator;
  operation.call = call;
  operation.flags = is_in_flight ? uint32_t{kNcclInFlight} : uint32_t{kNcclGpuTimed};
  return operation;
}

std::vector<std::pair<uint32_t, uint64_t>> taken(InFlight& in_flight) {
  std::vector<std::pair<uint32_t, uint64_t>> calls;
  for (const NcclOperation& one : in_flight.take()) calls.emplace_back(one.communicator, one.call);
  return calls;
}

TEST(NcclInFlight, are_those_without_an_end_whatever_comes_first) {
  InFlight in_flight;
  in_flight.add(told(0, true));
  in_flight.add(told(0, false));
  in_flight.add(told(1, false));  // by another thread, read first
  in_flight.add(told(2, true));
  in_flight.add(told(1, true));
  in_flight.add(told(2, true, 5));
  EXPECT_THAT(taken(in_flight), ElementsAre(std::pair(1u, 2u), std::pair(5u, 2u)));
  EXPECT_THAT(taken(in_flight), IsEmpty());
}

/// The main thread, whose records come first, leaves with work that another thread enqueued.
TEST(NcclInFlight, what_was_given_up_stays_so_whatever_comes_first) {
  for (const bool is_first : {true, false}) {
    InFlight in_flight;
    NcclOperation abandoned = told(3, true);
    abandoned.flags |= kNcclAbandoned;
    if (is_first) in_flight.add(abandoned);
    in_flight.add(told(3, true));
    if (!is_first) in_flight.add(abandoned);
    const auto found = in_flight.take();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].flags, uint32_t{kNcclInFlight} | uint32_t{kNcclAbandoned});
  }
}

TEST(NcclInFlight, calls_that_nobody_told_of_are_gaps_between_others) {
  InFlight in_flight;
  EXPECT_EQ(in_flight.last_gap(1), std::nullopt);
  in_flight.add(told(4, false));  // earlier ones may have been evicted
  in_flight.add(told(5, false));
  EXPECT_EQ(in_flight.last_gap(1), std::nullopt);
  in_flight.add(told(8, false));
  in_flight.add(told(10, true));
  EXPECT_EQ(in_flight.last_gap(1), 9u);
  in_flight.add(told(9, false));
  EXPECT_EQ(in_flight.last_gap(1), 7u);
  in_flight.add(told(6, true));
  in_flight.add(told(7, false));
  EXPECT_EQ(in_flight.last_gap(1), std::nullopt);
}

TEST(NcclInFlight, of_an_earlier_process_are_forgotten) {
  InFlight in_flight;
  in_flight.add(told(3, false));
  in_flight.take();
  in_flight.add(told(3, true));
  EXPECT_THAT(taken(in_flight), ElementsAre(std::pair(1u, 3u)));
}

TEST(NcclInFlight, are_the_last_ones_of_many) {
  InFlight in_flight;
  for (uint32_t call = 0; call < 3 * InFlight::kMaxKept; ++call) in_flight.add(told(call, true));
  const auto calls = taken(in_flight);
  ASSERT_EQ(calls.size(), InFlight::kMaxKept);
  EXPECT_EQ(calls.back().second, 3 * InFlight::kMaxKept - 1);
}

TEST(NcclInFlight, calls_that_ended_after_they_were_in_flight_are_told_of) {
  InFlight in_flight;
  in_flight.add(told(1, false));
  for (uint32_t call = 2; call < 300; ++call) {
    in_flight.add(told(call, true));
    in_flight.add(told(call, false));
  }
  EXPECT_EQ(in_flight.last_gap(1), std::nullopt);
  in_flight.add(told(301, true));
  EXPECT_EQ(in_flight.last_gap(1), 300u);
}

/// A service that runs for weeks: some ten thousand calls a second.
TEST(NcclInFlight, of_more_calls_than_32_bits_count_are_told) {
  for (const uint64_t turn : {uint64_t{1} << 31, uint64_t{1} << 32}) {
    InFlight in_flight;
    for (uint64_t call = turn - 100; call < turn + 100; ++call) {
      in_flight.add(told(call, true));
      if (call != turn + 50) in_flight.add(told(call, false));
    }
    EXPECT_EQ(in_flight.last_gap(1), std::nullopt);
    in_flight.add(told(turn + 102, false));
    EXPECT_EQ(in_flight.last_gap(1), turn + 101);
    EXPECT_THAT(taken(in_flight), ElementsAre(std::pair(1u, turn + 50)));
  }
}

/// Looking for gaps costs what was told, not what the numbers say.
TEST(NcclInFlight, of_wild_numbers_are_looked_at_no_longer_than_others) {
  InFlight in_flight;
  for (uint32_t communicator = 0; communicator < 1000; ++communicator) {
    in_flight.add(told(InFlight::kMaxCalls - 1 - communicator % 2, false, communicator));
    in_flight.add(told(InFlight::kMaxCalls - 3, true, communicator));
    in_flight.add(told(communicator % 2, false, communicator));
  }
  const auto begin = std::chrono::steady_clock::now();
  for (uint32_t communicator = 0; communicator < 1000; ++communicator) {
    const uint64_t gap = InFlight::kMaxCalls - (communicator % 2 == 0 ? 2 : 4);
    EXPECT_EQ(in_flight.last_gap(communicator), gap);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

TEST(NcclInFlight, forget_the_first_calls_of_too_many) {
  InFlight in_flight;
  in_flight.add(told(0, true));
  in_flight.add(told(1, false));
  for (uint32_t word = 1; word <= InFlight::kMaxWords; ++word)
    in_flight.add(told(word * 64, false));
  in_flight.add(told(2, true));  // its end may be among those
  EXPECT_THAT(taken(in_flight), ElementsAre(std::pair(1u, 0u)));
}

/// In a long job the room is an earlier communicator's.
TEST(NcclInFlight, of_a_communicator_that_is_made_late_are_told) {
  InFlight in_flight;
  for (uint32_t word = 0; word < InFlight::kMaxWords; ++word) in_flight.add(told(64 * word, false));
  for (uint32_t call = 0; call < 100; ++call) {
    in_flight.add(told(call, true, 2));
    in_flight.add(told(call, false, 2));
  }
  in_flight.add(told(101, false, 2));
  in_flight.add(told(101, true, 2));  // by another thread, read later
  in_flight.add(told(102, true, 2));
  EXPECT_EQ(in_flight.last_gap(2), 100u);
  EXPECT_THAT(taken(in_flight), ElementsAre(std::pair(2u, 102u)));
}

/// The room is another communicator's: among what is forgotten are calls that end later.
TEST(NcclInFlight, that_are_still_kept_end_however_much_is_forgotten) {
  InFlight in_flight;
  for (const uint32_t call : {0u, 1u, 2u}) in_flight.add(told(call, true, 2));
  in_flight.add(told(3, false, 2));  // its word is the first that is forgotten
  for (uint32_t word = 0; word < InFlight::kMaxWords; ++word) in_flight.add(told(64 * word, false));
  for (const uint32_t call : {0u, 1u}) in_flight.add(told(call, false, 2));
  EXPECT_THAT(taken(in_flight), ElementsAre(std::pair(2u, 2u)));
}

/// The calls of another one have taken its room: its next one is told all the same.
TEST(NcclInFlight, of_a_communicator_that_is_seldom_used_are_told) {
  InFlight in_flight;
  for (uint32_t call = 0; call <= 100; ++call) {
    in_flight.add(told(call, true, 2));
    in_flight.add(told(call, false, 2));
  }
  for (uint32_t word = 0; word < InFlight::kMaxWords; ++word) in_flight.add(told(64 * word, false));
  in_flight.add(told(100, true, 2));  // it has ended
  in_flight.add(told(101, true, 2));
  EXPECT_THAT(taken(in_flight), ElementsAre(std::pair(2u, 101u)));
}

TEST(NcclInFlight, of_many_communicators_are_no_more_than_there_is_room_for) {
  InFlight in_flight;
  constexpr uint32_t kCount = InFlight::kMaxKeptInAll / 50;
  for (uint32_t communicator = 0; communicator < 60; ++communicator) {
    for (uint32_t call = 0; call < kCount; ++call) in_flight.add(told(call, true, communicator));
  }
  for (uint32_t call = 0; call < 100; ++call) in_flight.add(told(call, false, 3));
  EXPECT_EQ(in_flight.take().size(), InFlight::kMaxKeptInAll - 100);
  for (uint32_t communicator = 0; communicator < 2000; ++communicator)
    in_flight.add(told(0, true, communicator));
  EXPECT_EQ(in_flight.take().size(), 2000u);
}

TEST(NcclInFlight, of_more_communicators_than_any_process_has_are_not_followed) {
  InFlight in_flight;
  for (uint32_t communicator = 0; communicator < InFlight::kMaxCommunicators + 9; ++communicator)
    in_flight.add(told(0, true, 7 * communicator));
  EXPECT_EQ(in_flight.take().size(), InFlight::kMaxCommunicators);
}

TEST(NcclInFlight, calls_of_damaged_records_cost_no_memory) {
  InFlight in_flight;
  in_flight.add(told(UINT32_MAX, false));
  in_flight.add(told(UINT32_MAX, true));
  EXPECT_THAT(taken(in_flight), IsEmpty());
}

}  // namespace
}  // namespace aon::writers::nccl
