// plugins/mpi/requests.h: numbers through the life of a handle, also when the handle comes back.
#include "plugins/mpi/requests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <random>
#include <vector>

#include "plugins/mpi/library.h"
#include "plugins/mpi/request_tables.h"

namespace aon::mpi {

Abi abi;
Queries queries;
std::atomic<bool> has_concurrent_threads;
static int g_told_count;
void requests_overflow() noexcept { ++g_told_count; }

namespace {

Writer g_writers[2];

Request made(Handle handle, RequestKind kind = RequestKind::kSend) {
  Request request = {};
  request.handle = handle;
  request.number = next_request_number();
  request.kind = kind;
  return request;
}

/// As reckon_with_threads() does, but no table is left.
void let_threads_be_concurrent() {
  last_concurrent_number = last_request_number() + 1000;
  has_concurrent_threads = true;
}

class Requests : public testing::Test {
 protected:
  void SetUp() override {
    abi.handle_mask = ~uint64_t{0};
    abi.request_shared = 0x10;
    abi.request_shared_size = 1;
    has_concurrent_threads = false;
  }
};

TEST_F(Requests, are_taken_once_under_random_traffic) {
  std::mt19937_64 random(1);
  std::map<Handle, uint64_t> live;
  Request out;
  for (int i = 0; i < 200'000; ++i) {
    const Handle handle = 0x1000 + random() % 3000 * 64;
    const auto found = live.find(handle);
    if (found == live.end()) {
      const Request request = made(handle);
      put_request(g_writers, request);
      live[handle] = request.number;
      continue;
    }
    ASSERT_TRUE(take_request(g_writers, handle, 0, &out));
    ASSERT_EQ(out.number, found->second);
    ASSERT_FALSE(take_request(g_writers, handle, 0, &out));
    live.erase(found);
  }
  for (const auto& [handle, number] : live) {
    ASSERT_TRUE(take_request(g_writers, handle, 0, &out));
    ASSERT_EQ(out.number, number);
  }
}

/// Bytes as told when it was put: what claims it sees neither another one nor half of it.
void expect_claimed(Handle handle, const Request& put) {
  RequestRoom room;
  const Request* claimed = claim_request(g_writers, handle, 0, &room);
  ASSERT_NE(claimed, nullptr);
  EXPECT_EQ(claimed->number, put.number);
  EXPECT_EQ(claimed->bytes, put.bytes);
  EXPECT_EQ(claimed->kind, put.kind);
  EXPECT_EQ(claimed->is_persistent, put.is_persistent);
  EXPECT_EQ(claim_request(g_writers, handle, 0, &room), nullptr);
}

TEST_F(Requests, a_claimed_one_is_whole_wherever_it_stood) {
  std::vector<Request> put;
  for (Handle handle = 0x100000; put.size() < 500; handle += 64) {  // close to full: they collide
    put.push_back(made(handle));
    put.back().bytes = handle * 3;
    put_request(g_writers, put.back());
  }
  std::shuffle(put.begin(), put.end(), std::mt19937_64(2));
  for (const Request& request : put) expect_claimed(request.handle, request);
  abi.request_shared_size = 3;
  const Request shared[] = {made(0x10), made(0x11, RequestKind::kReceive), made(0x12)};
  for (const Request& request : shared) {
    const auto start = request.kind == RequestKind::kSend ? put_started<RequestKind::kSend>
                                                          : put_started<RequestKind::kReceive>;
    start(request.handle, request.number, nullptr, 0, 0);
  }
  for (int i : {1, 2, 0})
    expect_claimed(shared[i].handle, shared[i]);  // the first lies under another
  Request persistent = made(0x500);
  persistent.is_persistent = true;
  put_request(g_writers, persistent);
  expect_claimed(0x500, persistent);
  Request out;
  EXPECT_TRUE(forget_request(g_writers, 0x500, &out));
}

TEST_F(Requests, a_persistent_one_is_live_from_start_to_completion) {
  Request request = made(0x500);
  request.number = 0;
  request.is_persistent = true;
  put_request(g_writers, request);
  Request out;
  EXPECT_FALSE(take_request(g_writers, 0x500, 0, &out));
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(activate_request(0x500, &out));
    const uint64_t number = out.number;
    ASSERT_TRUE(take_request(g_writers, 0x500, 0, &out));
    EXPECT_EQ(out.number, number);
    EXPECT_FALSE(take_request(g_writers, 0x500, 0, &out));
  }
  EXPECT_TRUE(forget_request(g_writers, 0x500, &out));
  EXPECT_FALSE(activate_request(0x500, &out));
}

TEST_F(Requests, a_persistent_collective_counts_its_starts) {
  Request request = made(0x700, RequestKind::kCollective);
  request.number = 0;
  request.is_persistent = true;
  request.preparation = 5;
  put_request(g_writers, request);
  Request out;
  for (uint32_t round = 1; round <= 3; ++round) {
    ASSERT_TRUE(activate_request(0x700, &out));
    EXPECT_EQ(out.start_count, round);
    EXPECT_EQ(out.preparation, 5u);
    ASSERT_TRUE(take_request(g_writers, 0x700, 0, &out));
  }
  EXPECT_TRUE(forget_request(g_writers, 0x700, &out));
}

TEST_F(Requests, ones_that_are_null_or_not_started_are_not_active) {
  abi.request_null = 0x2c000000;
  Request request = made(0x800);
  request.number = 0;
  request.is_persistent = true;
  put_request(g_writers, request);
  Request out;
  EXPECT_FALSE(may_be_active(0x2c000000, 0));
  EXPECT_FALSE(is_untold(0x2c000000));
  EXPECT_TRUE(may_be_active(0x840, 0)) << "one that is not known";
  EXPECT_TRUE(is_untold(0x840));
  EXPECT_TRUE(may_be_active(0x10, 0)) << "a shared one was complete when it was started";
  for (int round = 0; round < 2; ++round) {
    EXPECT_FALSE(may_be_active(0x800, 0));
    EXPECT_FALSE(is_untold(0x800));
    ASSERT_TRUE(activate_request(0x800, &out));
    EXPECT_TRUE(may_be_active(0x800, 0));
    EXPECT_TRUE(is_untold(0x800));
    tell_request(0x800, {0, 1, 8, false});
    EXPECT_FALSE(is_untold(0x800));
    EXPECT_TRUE(may_be_active(0x800, 0));
    ASSERT_TRUE(take_request(g_writers, 0x800, 0, &out));
  }
  EXPECT_TRUE(forget_request(g_writers, 0x800, &out));
  abi.request_null = 0;
}

TEST_F(Requests, a_cancelled_one_says_so_until_it_is_started_again) {
  Request request = made(0x600);
  request.is_persistent = true;
  put_request(g_writers, request);
  Request out;
  cancel_request(0x600);
  ASSERT_TRUE(take_request(g_writers, 0x600, 0, &out));
  EXPECT_TRUE(out.is_cancelled);
  ASSERT_TRUE(activate_request(0x600, &out));
  EXPECT_FALSE(out.is_cancelled);
  EXPECT_TRUE(forget_request(g_writers, 0x600, &out));
  cancel_request(0x600);  // nobody's
}

uint64_t mapped_pages() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages;
}

/// As many as were live before: no more memory is taken.
TEST_F(Requests, take_no_memory_after_warm_up) {
  constexpr Handle kLive = 5000;
  const auto start_and_complete = [](Handle first) {
    Request out;
    for (Handle i = 0; i < kLive; ++i) put_request(g_writers, made(first + i * 64));
    for (Handle i = 0; i < kLive; ++i) put_request(g_writers, made(0x10));
    for (Handle i = 0; i < kLive; ++i) {
      ASSERT_TRUE(take_request(g_writers, first + i * 64, 0, &out));
      ASSERT_TRUE(take_request(g_writers, 0x10, 0, &out));
    }
  };
  start_and_complete(0x1000);
  const uint64_t before = mapped_pages();
  for (Handle round = 1; round <= 100; ++round) start_and_complete(0x1000 + round * 16);
  EXPECT_EQ(mapped_pages(), before);
}

TEST_F(Requests, of_fortran_are_known_by_c_s_handle_once_they_cross) {
  constexpr Handle kInC = 0x5000;
  Request out;
  put_request(g_writers, made(request_of_fortran(9)));
  put_request(g_writers, made(request_of_fortran(10)));
  EXPECT_FALSE(has_requests_of_c());
  request_crosses(9, kInC);
  EXPECT_TRUE(has_requests_of_c());
  EXPECT_FALSE(knows_request(request_of_fortran(9)));
  EXPECT_TRUE(knows_request(request_of_fortran(10)));
  ASSERT_TRUE(take_request(g_writers, kInC, 0, &out));
  EXPECT_EQ(out.handle, kInC);
  EXPECT_FALSE(has_requests_of_c());
  request_crosses(9, kInC);  // nobody's
  EXPECT_FALSE(knows_request(kInC));
  EXPECT_TRUE(take_request(g_writers, request_of_fortran(10), 0, &out));
}

/// One of the two languages did not see its request end, and number or handle came back.
TEST_F(Requests, the_newer_of_two_that_are_one_is_it) {
  constexpr Handle kInC = 0x5040;
  Request out;
  for (const bool is_of_c_newer : {false, true}) {
    const Request first = made(is_of_c_newer ? request_of_fortran(7) : kInC);
    const Request second = made(is_of_c_newer ? kInC : request_of_fortran(7));
    put_request(g_writers, first);
    put_request(g_writers, second);
    request_crosses(7, kInC);
    EXPECT_FALSE(knows_request(request_of_fortran(7)));
    ASSERT_TRUE(take_request(g_writers, kInC, 0, &out));
    EXPECT_EQ(out.number, second.number);
  }
}

TEST_F(Requests, many_share_one_handle) {
  Request out;
  uint64_t sum = 0;
  for (int i = 0; i < 3000; ++i) {
    const Request request = made(0x10);
    put_request(g_writers, request);
    sum += request.number;
  }
  for (int i = 0; i < 3000; ++i) {
    ASSERT_TRUE(take_request(g_writers, 0x10, 0, &out));
    sum -= out.number;
  }
  EXPECT_EQ(sum, 0u);
  EXPECT_FALSE(take_request(g_writers, 0x10, 0, &out));
}

TEST_F(Requests, of_several_shared_handles_are_taken_by_handle) {
  abi.request_shared = 0x6c000000;
  abi.request_shared_size = 0x04000000;
  const Request send = made(0x6c000001, RequestKind::kSend);
  const Request collective = made(0x6c00000a, RequestKind::kCollective);
  const Request other_send = made(0x6c000001, RequestKind::kSend);
  for (const Request& request : {send, collective, other_send}) put_request(g_writers, request);
  Request out;
  ASSERT_TRUE(take_request(g_writers, 0x6c00000a, 0, &out));
  EXPECT_EQ(out.number, collective.number);
  EXPECT_FALSE(take_request(g_writers, 0x6c00000a, 0, &out));
  ASSERT_TRUE(take_request(g_writers, 0x6c000001, 0, &out));
  EXPECT_EQ(out.number, other_send.number);
  ASSERT_TRUE(take_request(g_writers, 0x6c000001, 0, &out));
  EXPECT_EQ(out.number, send.number);
}

Handle g_send_to_nobody;
Handle g_receive_from_nobody;
Handle g_step;  ///< to the next request of the same kind

void ask_a_library_that_gives(Handle send, Handle receive, Handle step) {
  g_send_to_nobody = send;
  g_receive_from_nobody = receive;
  g_step = step;
  queries.isend = [](const void*, int, Handle, int, int, Handle, void* request) {
    memcpy(request, &g_send_to_nobody, sizeof g_send_to_nobody);
    g_send_to_nobody += g_step;
    return kSuccess;
  };
  queries.irecv = [](void*, int, Handle, int, int, Handle, void* request) {
    memcpy(request, &g_receive_from_nobody, sizeof g_receive_from_nobody);
    g_receive_from_nobody += g_step;
    return kSuccess;
  };
  queries.wait = [](void*, Status*) { return kSuccess; };
  abi.request_shared_size = 0;
  abi.handle_bytes = 8;
  abi.fortran.byte = 1;
  learn_shared_requests(0x102);
}

TEST_F(Requests, that_are_shared_are_asked_for) {
  ask_a_library_that_gives(0x10168, 0x102d0, 0);
  EXPECT_TRUE(is_shared_request(0x10168 + 15 * 0x168)) << "the last of MPICH's array";
  EXPECT_FALSE(is_shared_request(0x10168 + 16 * 0x168));
  EXPECT_FALSE(is_shared_request(0x10168 - 2 * 0x168));
  ask_a_library_that_gives(0x5000, 0x5000, 0);
  EXPECT_TRUE(is_shared_request(0x5000));
  EXPECT_FALSE(is_shared_request(0x5001));
  ask_a_library_that_gives(0x5000, 0x6000, 0x100);
  EXPECT_FALSE(is_shared_request(0x5000));
  EXPECT_FALSE(is_shared_request(0x6000));
}

/// A call that has just found that threads take turns takes its number when others have theirs.
TEST_F(Requests, numbers_of_threads_are_not_taken_back_by_a_call_that_is_late) {
  const uint64_t in_turns = next_request_number();
  let_threads_be_concurrent();
  const uint64_t first = next_request_number();
  has_concurrent_threads = false;  // what the late one has seen
  const uint64_t late = next_request_number();
  has_concurrent_threads = true;
  EXPECT_EQ(next_request_number(), first + 1);
  EXPECT_EQ(late, in_turns + 1);
  EXPECT_LT(late, first);
}

TEST_F(Requests, of_a_shared_handle_are_taken_by_their_thread_first) {
  let_threads_be_concurrent();
  const Request first = made(0x10);
  const Request second = made(0x10);
  put_request(&g_writers[0], first);
  put_request(&g_writers[1], second);
  Request out;
  ASSERT_TRUE(take_request(&g_writers[0], 0x10, kAnyShared, &out));
  EXPECT_EQ(out.number, first.number);
  ASSERT_TRUE(take_request(&g_writers[0], 0x10, kAnyShared, &out));
  EXPECT_EQ(out.number, second.number);
}

/// Who looks for another thread's request locks no stack that has none.
TEST_F(Requests, of_a_stack_tell_without_its_lock_whether_there_are_any) {
  Stack stack;
  RequestRoom room;
  for (const Handle handle : {0x10, 0x11, 0x12}) *stack.place() = made(handle);
  for (const Handle handle : {0x11, 0x12, 0x10}) {
    EXPECT_TRUE(stack.has_any());
    EXPECT_NE(stack.take(handle, &room), nullptr);
  }
  EXPECT_FALSE(stack.has_any());
}

TEST_F(Requests, a_handle_that_came_back_before_its_completion_was_told) {
  let_threads_be_concurrent();
  const Request first = made(0x700);
  put_request(g_writers, first);
  const uint64_t newest_of_first = last_request_number();
  const Request second = made(0x700);
  put_request(g_writers, second);
  const uint64_t newest_of_second = last_request_number();
  put_request(g_writers, made(0x700));
  Request out;
  ASSERT_TRUE(take_request(g_writers, 0x700, newest_of_second, &out));
  EXPECT_EQ(out.number, second.number);
  ASSERT_TRUE(take_request(g_writers, 0x700, newest_of_first, &out));
  EXPECT_EQ(out.number, first.number);
  EXPECT_FALSE(take_request(g_writers, 0x700, newest_of_second, &out));
  EXPECT_TRUE(take_request(g_writers, 0x700, last_request_number(), &out));
}

TEST_F(Requests, one_whose_handle_came_back_as_a_persistent_one_was_active) {
  let_threads_be_concurrent();
  put_request(g_writers, made(0x900));
  const uint64_t newest = last_request_number();
  Request persistent = made(0x900);
  persistent.number = 0;
  persistent.is_persistent = true;
  put_request(g_writers, persistent);
  Request out;
  EXPECT_FALSE(may_be_active(0x900, 0));
  EXPECT_TRUE(may_be_active(0x900, newest));
  ASSERT_TRUE(take_request(g_writers, 0x900, newest, &out));
  EXPECT_FALSE(may_be_active(0x900, newest));
  EXPECT_TRUE(forget_request(g_writers, 0x900, &out));
}

TEST_F(Requests, that_were_begun_before_there_were_threads_are_found) {
  constexpr Handle kLive = 65'000;  // the table they leave is half of what all may have
  const uint64_t unfollowed_before = unfollowed_requests();
  Request persistent = made(0x500);
  persistent.number = 0;
  persistent.is_persistent = true;
  put_request(g_writers, persistent);
  put_request(g_writers, made(0x10));
  std::map<Handle, uint64_t> live;
  for (Handle i = 0; i < kLive; ++i) {
    const Request request = made(0x1000 + i * 64);
    put_request(g_writers, request);
    live[request.handle] = request.number;
  }
  reckon_with_threads();
  EXPECT_TRUE(threads_are_concurrent());
  Request out;
  for (const auto& [handle, number] : live) {
    ASSERT_TRUE(take_request(&g_writers[1], handle, last_request_number(), &out));
    EXPECT_EQ(out.number, number);
    EXPECT_FALSE(take_request(&g_writers[1], handle, last_request_number(), &out));
  }
  EXPECT_TRUE(activate_request(0x500, &out));
  EXPECT_TRUE(forget_request(g_writers, 0x500, &out));
  EXPECT_TRUE(take_request(&g_writers[1], 0x10, kAnyShared, &out));
  reckon_with_threads();  // as a second session does
  put_request(g_writers, made(0x700));
  EXPECT_TRUE(take_request(g_writers, 0x700, last_request_number(), &out));
  EXPECT_EQ(unfollowed_requests(), unfollowed_before);
  // Who has just found that it needs no lock sees them as they were.
  has_concurrent_threads = false;
  RequestRoom room;
  for (const auto& [handle, number] : live) {
    const Request* claimed = claim_request(g_writers, handle, 0, &room);
    ASSERT_NE(claimed, nullptr);
    ASSERT_EQ(claimed->number, number);
  }
  EXPECT_TRUE(forget_request(g_writers, 0x500, &out));
  EXPECT_NE(claim_request(g_writers, 0x10, 0, &room), nullptr);
}

TEST_F(Requests, one_that_was_started_after_the_call_began_is_not_its_own) {
  let_threads_be_concurrent();
  const uint64_t newest = last_request_number();
  const Request later = made(0x700);
  put_request(g_writers, later);
  Request out;
  EXPECT_FALSE(take_request(g_writers, 0x700, newest, &out));
  ASSERT_TRUE(take_request(g_writers, 0x700, last_request_number(), &out));
  EXPECT_EQ(out.number, later.number);
}

/// 2^48 bytes are more than there are addresses for.
TEST_F(Requests, that_got_no_memory_leave_others_what_they_may_have) {
  constexpr uint64_t kTooMany = (uint64_t{1} << 48) / sizeof(Request);
  Allowance allowance;
  EXPECT_EQ(map_requests(&allowance, kTooMany - kMaxEntries, kTooMany), nullptr);
  EXPECT_TRUE(allowance.take(kMaxEntries));
}

/// Its handle came back in a thread that a first session has brought meanwhile.
TEST_F(Requests, of_a_call_that_began_in_turns_are_none_that_threads_have_begun) {
  const Request first = made(0x700);
  let_threads_be_concurrent();
  put_request(&g_writers[0], first);
  Request second = made(0x700);
  second.is_persistent = true;
  put_request(&g_writers[1], second);
  const uint64_t newest_of_second = last_request_number();
  Request out;
  EXPECT_TRUE(may_be_active(0x700, 0));
  ASSERT_TRUE(take_request(&g_writers[0], 0x700, 0, &out));
  EXPECT_EQ(out.number, first.number);
  EXPECT_FALSE(take_request(&g_writers[0], 0x700, 0, &out)) << "the other is not this call's";
  ASSERT_TRUE(take_request(&g_writers[1], 0x700, newest_of_second, &out));
  EXPECT_EQ(out.number, second.number);
  EXPECT_FALSE(may_be_active(0x700, 0));
  EXPECT_TRUE(forget_request(g_writers, 0x700, &out));
}

/// Leaves nothing behind, so that it may stand anywhere.
TEST_F(Requests, beyond_the_bound_are_counted_and_the_others_live_on) {
  const uint64_t before = unfollowed_requests();
  const int told_before = g_told_count;
  const uint64_t many = 3 * kMaxLiveRequests;
  for (uint64_t i = 0; i < many; ++i) put_request(g_writers, made(0x1000 + i * 64));
  uint64_t taken_count = 0;
  Request out;
  for (uint64_t i = 0; i < many; ++i) {
    taken_count += take_request(g_writers, 0x1000 + i * 64, 0, &out) ? 1 : 0;
  }
  EXPECT_GE(taken_count, kMaxLiveRequests / 2);  // another test's tables keep their memory
  EXPECT_EQ(taken_count + unfollowed_requests() - before, many);
  EXPECT_EQ(g_told_count, told_before + 1);
  put_request(g_writers, made(0x500));
  EXPECT_TRUE(take_request(g_writers, 0x500, 0, &out));
}

TEST_F(Requests, of_a_shared_handle_are_bounded_too) {
  const uint64_t before = unfollowed_requests();
  const uint64_t many = 3 * kMaxLiveRequests;
  for (uint64_t i = 0; i < many; ++i) put_request(g_writers, made(0x10));
  uint64_t taken_count = 0;
  Request out;
  while (take_request(g_writers, 0x10, 0, &out)) ++taken_count;
  EXPECT_GE(taken_count, kMaxLiveRequests);
  EXPECT_EQ(taken_count + unfollowed_requests() - before, many);
}

}  // namespace
}  // namespace aon::mpi
