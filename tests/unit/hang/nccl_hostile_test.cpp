// What a damaged or hostile spool says of operations of NCCL: nobody is accused for it, and neither
// memory nor text grows with it.

#include <time.h>

#include <map>
#include <numeric>
#include <random>

#include "tests/unit/hang/nccl_hang_fixture.h"

namespace aon::writers {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr size_t kMaxTextBytes = size_t{64} << 10;

size_t bytes_of(const std::vector<std::string>& lines) {
  return std::accumulate(lines.begin(), lines.end(), size_t{0},
                         [](size_t sum, const std::string& line) { return sum + line.size(); });
}

class NcclHostile : public NcclHangs {
 protected:
  explicit NcclHostile(uint32_t ranks = 4) : NcclHangs(ranks) {}
  CommunicatorDefinition& told(uint32_t rank) {
    return processes_[rank].communicators[7].definition;
  }
  void expect_nobody_is_absent() {
    for (const NcclHang& hang : finder_.report().nccl) {
      EXPECT_THAT(hang.absent, IsEmpty());
      EXPECT_FALSE(hang.other_end);
    }
  }
};

TEST_F(NcclHostile, a_member_that_two_processes_claim_to_be_is_not_accused) {
  for (uint32_t rank : {0, 1, 2, 3}) enqueued(rank, {});
  for (uint32_t rank : {0, 2}) enqueued(rank, {.sequence = 1, .call = 1});
  told(3).rank = 1;
  model_.communicators[0].rank_count = 3;
  quiet(0);
  run();
  expect_nobody_is_absent();
  HangFinder combiner;
  test::combine({&combiner}, model_, states());
  for (const NcclHang& hang : combiner.report().nccl) EXPECT_THAT(hang.absent, IsEmpty());
}

TEST_F(NcclHostile, ranks_beyond_the_communicator_are_no_members) {
  for (uint32_t rank : {0, 1, 2, 3}) {
    told(rank).size = 4;
    enqueued(rank, {});
  }
  for (uint32_t rank : {0, 1, 2}) enqueued(rank, {.sequence = 1, .call = 1});
  told(3).rank = UINT32_MAX;
  quiet(0);
  run();
  expect_nobody_is_absent();
}

TEST_F(NcclHostile, sequences_that_cannot_be_are_no_operations) {
  for (uint32_t rank : {0, 1, 2, 3}) enqueued(rank, {});
  enqueued(0, {.sequence = UINT64_MAX, .call = 1});
  enqueued(0, {.sequence = UINT64_MAX - 1, .call = 2});
  quiet(0);
  run();
  expect_nobody_is_absent();
}

TEST_F(NcclHostile, times_beyond_the_end_make_nothing_old) {
  in_flight(0, {.time_ns = UINT64_MAX - 5});
  add(1, kNcclInFlight | kNcclAbandoned, {.time_ns = UINT64_MAX - 5});
  EXPECT_THAT(run(), IsEmpty());
}

TEST_F(NcclHostile, more_pairs_than_there_is_room_for_are_forgotten_and_accuse_nobody) {
  constexpr auto kCount = static_cast<int32_t>(NcclHangFinder::kMaxTransferKinds);
  NcclHangFinder finder;
  finder.begin(model_, kEnd);
  NcclOperation operation;
  operation.communicator = 7;
  Event event = test::event(EventKind::kNcclCall, kEnd - 5 * kSecond, 0);
  event.request = reinterpret_cast<uint64_t>(&operation);
  const auto call = [&](uint32_t region, int32_t peer, uint32_t number) {
    operation.region = 10 - region;
    operation.peer = peer;
    operation.call = number;
    finder.add(event);
  };
  finder.begin_location(model_.locations[0]);
  call(kSend, 1, 0);
  finder.begin_location(model_.locations[1]);
  for (int32_t i = 0; i < kCount; ++i) call(kReceive, 10 + i, static_cast<uint32_t>(i));
  call(kReceive, 0, static_cast<uint32_t>(kCount));
  quiet(0);
  const std::vector<uint64_t> last_ns(4);
  EXPECT_THAT(finder.finish(last_ns).hangs, IsEmpty());
}

class NcclHostileCommunicators : public NcclHostile {
 protected:
  static constexpr uint32_t kCount = 20'000;
  NcclHostileCommunicators() {
    for (Group& group : model_.groups) {
      for (uint32_t id = 1; id <= kCount; ++id) {
        group.communicator_map[kFirst + id] = id;
        processes_[group.id].communicators[kFirst + id].definition = told(group.id);
      }
    }
    model_.communicators.resize(kCount + 1, model_.communicators[0]);
  }
  static constexpr uint32_t kFirst = 1000;
};

/// A process with thousands of communicators has as many timelines.
TEST_F(NcclHostileCommunicators, are_looked_at_at_once) {
  Location timeline = model_.locations.front();
  timeline.type = LocationType::kAcceleratorStream;
  model_.locations.assign(4 * kCount, timeline);
  const clock_t start = ::clock();
  run();
  EXPECT_LT(::clock() - start, CLOCKS_PER_SEC);
}

TEST_F(NcclHostileCommunicators, that_all_hang_are_told_in_short) {
  for (uint32_t id = 1; id <= kCount; ++id) {
    for (uint32_t rank : {0, 1, 2}) {
      enqueued(rank, {});
      operations_.back().communicator = kFirst + id;
    }
  }
  quiet(0);
  const clock_t start = ::clock();
  run();
  EXPECT_LT(::clock() - start, 2 * CLOCKS_PER_SEC);
  EXPECT_THAT(finder_.report().nccl, SizeIs(NcclHangFinder::kMaxHangs));
  EXPECT_LT(bytes_of(lines()), 8000u);
  EXPECT_THAT(lines(), Contains("and 19 984 more operations of NCCL do not end"));
}

class NcclHostileOfMany : public NcclHostile {
 protected:
  NcclHostileOfMany() : NcclHostile(6000) {}
};

TEST_F(NcclHostileOfMany, members_of_which_each_second_one_is_missing_are_listed_in_short) {
  for (uint32_t rank = 0; rank < 6000; ++rank) enqueued(rank, {});
  for (uint32_t rank = 0; rank < 6000; rank += 2) enqueued(rank, {.sequence = 1, .call = 1});
  quiet(0);
  run();
  ASSERT_THAT(finder_.report().nccl, SizeIs(1));
  EXPECT_THAT(finder_.report().nccl[0].absent, SizeIs(3000));
  EXPECT_LT(bytes_of(lines()), 8000u);
  EXPECT_LT(finding().size(), 1000u);
  EXPECT_THAT(lines(), Contains(HasSubstr(" more")));
}

TEST_F(NcclHostileOfMany, members_that_all_call_something_else_are_told_in_short) {
  for (uint32_t rank = 0; rank < 6000; ++rank) {
    enqueued(rank, {.bytes = 64 + rank});
    quiet(rank);
  }
  run();
  ASSERT_THAT(finder_.report().nccl_disagreements, SizeIs(1));
  EXPECT_LT(bytes_of(lines()), 8000u);
  EXPECT_LT(finding().size(), 1000u);
  EXPECT_THAT(finding(), HasSubstr("and others in 5996 more ways"));
}

TEST_F(NcclHostileOfMany, members_that_are_in_it_with_all_kinds_of_bytes_are_told_in_short) {
  for (uint32_t rank = 0; rank < 6000; ++rank) in_flight(rank, {.bytes = 64 + rank});
  quiet(0);
  run();
  EXPECT_LT(bytes_of(lines()), 8000u);
  EXPECT_THAT(lines(), Contains("    and 5984 other ones"));
}

class NcclRandom : public NcclHostile {
 protected:
  NcclRandom() : NcclHostile(5) {}
  /// Mostly what may be, sometimes anything.
  uint64_t number(uint64_t below) {
    const uint64_t any = random_();
    return any % 8 == 0 ? random_() : (any >> 8) % below;
  }
  void restart() {
    finder_ = HangFinder();
    operations_.clear();
    model_.stacks.clear();
    for (auto& events : events_) events.clear();
  }

  std::mt19937_64 random_{1};
};

TEST_F(NcclRandom, operations_of_any_bits_crash_nothing_and_say_little) {
  for (int round = 0; round < 1500; ++round) {
    restart();
    for (uint32_t rank = 0; rank < 5; ++rank) {
      told(rank).rank = static_cast<uint32_t>(number(5));
      told(rank).size = static_cast<uint32_t>(number(6));
      for (uint64_t i = number(20) % 64; i != 0; --i) {
        add(rank, static_cast<uint32_t>(random_() & random_()),
            {.region = kAllReduce + static_cast<uint32_t>(number(4)),
             .sequence = number(6),
             .call = static_cast<uint32_t>(number(12)),
             .peer = static_cast<int32_t>(number(5)),
             .bytes = number(3),
             .time_ns = kEnd - number(100 * kSecond)});
        NcclOperation& made = operations_.back();
        made.launch_ns = number(kEnd);
        made.end_ns = number(2 * kEnd);
        made.communicator = number(9) == 0 ? static_cast<uint32_t>(random_()) : 7;
      }
      if (number(2) == 0) lose(rank, kEnd - number(100 * kSecond));
      if (number(2) == 0) quiet(rank);
    }
    model_.communicators[0].rank_count = static_cast<uint32_t>(number(6) % 4096);
    run();
    EXPECT_LT(bytes_of(lines()), kMaxTextBytes);
    EXPECT_LT(finding().size(), 4000u);
    HangFinder combiner;
    test::combine({&combiner}, model_, states());
    EXPECT_LT(bytes_of(hang_lines(model_, combiner.report(), kEnd)), kMaxTextBytes);
  }
}

/// A healthy job whose spool has holes of all kinds, and a rank that is quiet at its end.
TEST_F(NcclRandom, holes_accuse_nobody) {
  constexpr uint32_t kCalls = 40;
  for (int round = 0; round < 2000; ++round) {
    restart();
    const bool is_timed = round % 2 == 0;
    struct Call {
      uint32_t region;
      uint32_t source;  // of a transfer
      uint32_t destination;
    };
    std::vector<Call> calls(kCalls);
    for (Call& call : calls) {
      const auto kind = static_cast<uint32_t>(random_() % 3);
      call.region = kind == 2 ? kSend : kAllReduce + kind;
      call.source = static_cast<uint32_t>(random_() % 5);
      call.destination = static_cast<uint32_t>((call.source + 1 + random_() % 4) % 5);
    }
    for (uint32_t rank = 0; rank < 5; ++rank) {
      const auto first = static_cast<uint32_t>(random_() % kCalls);
      const auto last = std::min(kCalls, first + static_cast<uint32_t>(random_() % 12));
      const auto is_of = [&](const Call& call) {
        return call.region != kSend || rank == call.source || rank == call.destination;
      };
      // At the end of a stream nothing but a loss tells that something is missing.
      const bool is_end = std::none_of(calls.begin() + last, calls.end(), is_of);
      const bool is_told = is_end || random_() % 2 == 0;
      std::map<std::pair<uint32_t, int32_t>, uint64_t> sequences;
      uint32_t number = 0;
      for (uint32_t i = 0; i < kCalls; ++i) {
        const Call& call = calls[i];
        Told one{.region = call.region, .time_ns = kEnd - (100 - i) * kSecond};
        if (i == last && is_told && first != last) lose(rank, one.time_ns - 1);
        if (!is_of(call)) continue;
        if (call.region == kSend) {
          one.region = rank == call.source ? kSend : kReceive;
          one.peer = static_cast<int32_t>(rank == call.source ? call.destination : call.source);
        }
        one.sequence = sequences[{one.region, one.peer}]++;
        one.call = number++;
        if (i >= first && i < last) continue;
        if (is_timed) in_flight(rank, one);
        add(rank, is_timed ? uint32_t{kNcclGpuTimed} : 0, one);
      }
      if (last == kCalls && first != last) lose(rank, kEnd - 50 * kSecond);
    }
    quiet(static_cast<uint32_t>(random_() % 5));
    run();
    expect_nobody_is_absent();
    EXPECT_THAT(finder_.report().nccl_disagreements, IsEmpty());
    if (HasFailure()) FAIL() << "round " << round << ": " << testing::PrintToString(lines());
  }
}

}  // namespace
}  // namespace aon::writers
