// plugins/mpi/completion.h: what a call of Fortran has ended that failed, where the library writes
// nothing then but ierror and what C wrote. And the end of a request that is freed.
#include "plugins/mpi/completion.h"

#include <gtest/gtest.h>

#include <set>

#include "plugins/mpi/files.h"
#include "plugins/mpi/library.h"
#include "plugins/mpi/requests.h"

namespace aon::mpi {
namespace {

constexpr int kTruncated = 15;
constexpr int kInStatus = 18;
constexpr uint32_t kStatusBytes = 24;

std::set<int> g_live;  // numbers that the library has

/// Three receives that Fortran has begun, and statuses that say, from an earlier call, success.
class FailedInFortran : public testing::Test {
 protected:
  void SetUp() override {
    before_ = abi;
    queries_before_ = queries;
    abi = {};
    abi.handle_mask = ~Handle{0};
    abi.handle_bytes = 8;
    abi.status_bytes = kStatusBytes;
    abi.error_offset = 8;
    abi.error_class_mask = ~0;
    abi.error_in_status = kInStatus;
    abi.error_pending = kInStatus + 1;
    abi.undefined = -32766;
    abi.request_null = 0x2100;
    abi.fortran.keeps_failures = true;
    queries.request_f2c = [](int number) -> Handle { return g_live.count(number) != 0 ? 1 : 0; };
    g_live = {numbers_[0], numbers_[2]};  // the second one has ended
    for (const int32_t number : numbers_) {
      Request begun = {};
      begun.handle = request_of_fortran(number);
      begun.number = next_request_number();
      begun.kind = RequestKind::kReceive;
      put_request(nullptr, begun);
    }
  }
  void TearDown() override {
    Request out;
    for (const int32_t number : numbers_) forget_request(nullptr, request_of_fortran(number), &out);
    abi = before_;
    queries = queries_before_;
  }

  static Handle from_fortran(const void* number) noexcept {
    return request_of_fortran(*static_cast<const int32_t*>(number));
  }
  void expect_only_second_ended() {
    EXPECT_TRUE(knows_request(request_of_fortran(numbers_[0])));
    EXPECT_FALSE(knows_request(request_of_fortran(numbers_[1])));
    EXPECT_TRUE(knows_request(request_of_fortran(numbers_[2])));
  }
  Handles requests() { return {numbers_, from_fortran}; }
  Status* statuses() { return reinterpret_cast<Status*>(statuses_); }

  int32_t numbers_[3] = {9, 10, 11};  // as before the call
  alignas(8) char statuses_[3 * kStatusBytes] = {};

 private:
  Abi before_;
  Queries queries_before_;
};

TEST_F(FailedInFortran, a_wait_has_ended_what_the_library_has_no_more) {
  OwnStatus own;
  const Handles second(numbers_ + 1, from_fortran);
  WaitOne(second, statuses(), &own).complete(nullptr, 0, kTruncated);
  WaitOne(requests(), statuses(), &own).complete(nullptr, 0, kTruncated);  // it was refused
  expect_only_second_ended();
}

TEST_F(FailedInFortran, of_any_the_index_is_as_c_has_it_or_was_not_written) {
  const WaitMany waiting(3, requests(), 1, statuses());
  waiting.complete_any(nullptr, 0, 0, kTruncated);
  expect_only_second_ended();
}

TEST_F(FailedInFortran, of_all_the_statuses_were_not_written) {
  const WaitMany waiting(3, requests(), 3, statuses());
  waiting.complete_all(nullptr, 0, kInStatus);
  expect_only_second_ended();
}

TEST_F(FailedInFortran, of_some_the_indices_are_as_c_has_them) {
  const WaitMany waiting(3, requests(), 3, statuses());
  const int indices[] = {1};
  waiting.complete_some(nullptr, 0, 1, indices, 1, kInStatus);
  expect_only_second_ended();
}

TEST_F(FailedInFortran, a_read_whose_request_is_freed_is_not_under_way) {
  Request begun = {};
  begun.handle = request_of_fortran(12);
  begun.number = next_request_number();
  begun.kind = RequestKind::kFile;
  begun.tag = static_cast<int32_t>(kIoCollective << 8);
  put_request(nullptr, begun);
  live_file_collectives = 1;
  free_request(nullptr, begun.handle);
  EXPECT_FALSE(has_live_file_collectives());
  live_file_collectives = 0;
}

}  // namespace
}  // namespace aon::mpi
