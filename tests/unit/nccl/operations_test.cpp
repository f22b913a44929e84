// Rows and histograms of NCCL's operations.

#include "writers/nccl/operations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "core/base/digits.h"
#include "tests/unit/profile/one_rank.h"
#include "tests/unit/writers/two_shares.h"

namespace aon::writers::nccl {
namespace {

NcclOperation operation(uint64_t bytes, uint64_t gpu_ns = 0) {
  NcclOperation made;
  made.start_ns = 100;
  made.end_ns = 130;
  made.bytes = bytes;
  made.communicator = 7;  // the world of the model
  made.region = 2;        // global region 8
  made.flags = gpu_ns != 0 ? uint32_t{kNcclGpuTimed} : 0;
  made.gpu_ns = gpu_ns;
  return made;
}

TEST(NcclOperations, are_rows_with_global_ids) {
  const Model model = test::make_model(2);
  OperationTable table;
  EXPECT_TRUE(table.is_empty());
  table.begin(model.groups[1]);
  table.add(operation(64));
  ASSERT_EQ(table.rows().size(), 1u);
  EXPECT_EQ(table.rows()[0].group, 1u);
  EXPECT_EQ(table.rows()[0].operation.communicator, 0u);
  EXPECT_EQ(table.rows()[0].operation.region, 8u);
  NcclOperation unknown = operation(64);
  unknown.communicator = 99;
  table.add(unknown);
  EXPECT_EQ(table.rows()[1].operation.communicator, profile::LocalIds::kNone);
}

TEST(NcclOperations, are_summed_up_over_ranks_by_size) {
  const Model model = test::make_model(2);
  OperationTable table;
  for (const Group& group : model.groups) {
    table.begin(group);
    table.add(operation(64, 1000));
    table.add(operation(127, 4000));
    table.add(operation(128));
  }
  ASSERT_EQ(table.histograms().size(), 2u);
  const Histogram& small = table.histograms().at({0, 8, 6});
  EXPECT_EQ(small.count, 4u);
  EXPECT_EQ(small.bytes, 2u * (64 + 127));
  EXPECT_EQ(small.timed_count, 4u);
  EXPECT_EQ(small.gpu_ns, 10'000u);
  EXPECT_EQ(small.min_ns, 1000u);
  EXPECT_EQ(small.max_ns, 4000u);
  EXPECT_EQ(small.host_ns, 120u);
  EXPECT_EQ(small.by_duration[profile::histogram_bucket(1000)], 2u);
  EXPECT_EQ(small.by_duration[profile::histogram_bucket(4000)], 2u);
  const Histogram& large = table.histograms().at({0, 8, 7});
  EXPECT_EQ(large.count, 2u);
  EXPECT_EQ(large.timed_count + large.timed_bytes + large.gpu_ns, 0u);
}

devices::TimedOperation timed(uint32_t call, uint64_t gpu_ns) {
  devices::TimedOperation made{};
  made.communicator = 7;
  made.region = 2;
  made.call = call;
  made.bytes = 64;
  made.start_ns = 110;
  made.gpu_ns = gpu_ns;
  made.shared_by = 1;
  return made;
}

TEST(NcclOperations, get_the_times_of_their_kernels) {
  const Model model = test::make_model(2);
  OperationTable table;
  for (const Group& group : model.groups) {
    table.begin(group);
    for (uint32_t call = 0; call < 5; ++call) {
      NcclOperation one = operation(64, call == 4 ? 9000 : 0);
      one.call = call;
      table.add(one);
    }
    if (group.id == 0) continue;
    table.add_time(timed(0, 1000));
    table.add_time(timed(2, 3000));
    devices::TimedOperation shared = timed(1, 1000);
    shared.shared_by = 2;
    table.add_time(shared);
    devices::TimedOperation told = timed(4, 1000);
    told.is_told = true;
    table.add_time(told);
    table.add_time(timed(17, 2000));  // its row was left out
    devices::TimedOperation unknown = timed(0, 1000);
    unknown.communicator = 99;
    table.add_time(unknown);
  }
  const auto times = [&](size_t row) { return table.rows()[row].operation.gpu_ns; };
  const std::vector<uint64_t> expected = {0, 0, 0, 0, 9000, 1000, 0, 3000, 0, 9000};
  for (size_t row = 0; row < expected.size(); ++row) EXPECT_EQ(times(row), expected[row]) << row;
  EXPECT_EQ(table.rows()[5].operation.flags, uint32_t{kNcclKernelTimed});
  EXPECT_EQ(table.rows()[5].operation.gpu_begin_ns, 110u);
  EXPECT_EQ(table.rows()[6].operation.flags, 0u);
  const Histogram& sums = table.histograms().at({0, 8, 6});
  EXPECT_EQ(sums.timed_count, 2u + 3);
  EXPECT_EQ(sums.gpu_ns, 18'000u + 6000);
  EXPECT_EQ(sums.min_ns, 1000u);
}

TEST(NcclOperations, a_time_without_a_process_is_nobodys) {
  OperationTable table;
  table.add_time(timed(0, 1000));
  EXPECT_TRUE(table.is_empty());
}

/// Communicators of two members, which call AllReduces and send to each other.
class NcclOperationsOfMany : public testing::Test {
 protected:
  NcclOperationsOfMany() : model_(test::make_model(2)) {
    model_.regions[8].name = "ncclAllReduce";
    model_.regions[7].name = "ncclSend";
    model_.regions[6].name = "ncclRecv";
    for (Group& group : model_.groups) {
      processes_[group.id].communicators[7].definition.rank = group.id;
      group.process = &processes_[group.id];
    }
  }

  /// The `count` operations of a rank, of each function every third one.
  static void feed(OperationTable* table, const Group& group, uint32_t count) {
    table->begin(group);
    for (uint32_t call = 0; call < count; ++call) {
      NcclOperation one = operation(64, 100 + call % 50);
      one.call = call;
      one.sequence = call / 3;
      const bool is_send = call % 3 == 1 + group.id;
      if (call % 3 != 0) {
        one.region = is_send ? 3 : 4;
        one.peer = static_cast<int32_t>(1 - group.id);
      }
      table->add(one);
    }
  }

  Model model_;
  spool::Process processes_[2];
};

/// Function without its end, and number.
using Which = std::pair<uint32_t, uint64_t>;
Which which(const OperationRow& row) {
  const bool is_first_pair = row.operation.region == (row.group == 0 ? 7u : 6u);
  return {row.operation.region == 8 ? 0 : is_first_pair ? 1 : 2, row.operation.sequence};
}

TEST_F(NcclOperationsOfMany, beyond_the_limit_are_thinned_out_by_whole_operations) {
  constexpr uint32_t kCount = 3 * kMaxOperationRows / 2;
  OperationTable table(&model_);
  for (const Group& group : model_.groups) feed(&table, group, kCount);
  table.finish();
  EXPECT_EQ(table.thinning(), 2u);
  EXPECT_EQ(table.rows().size() + table.left_out_count(), 2 * size_t{kCount});
  EXPECT_NEAR(static_cast<double>(table.rows().size()), 2 * kCount / 4.0, kCount / 50.0);
  std::map<Which, size_t> rows;
  std::array<size_t, 3> by_function{};
  std::array<size_t, 2> by_half{};
  for (const OperationRow& row : table.rows()) {
    ++rows[which(row)];
    ++by_function[which(row).first];
    ++by_half[row.operation.sequence < kCount / 6 ? 0 : 1];
  }
  for (const auto& [operation, count] : rows) ASSERT_EQ(count, 2u);
  for (const size_t count : by_function) EXPECT_NEAR(count, kCount / 6.0, kCount / 60.0);
  for (const size_t count : by_half) EXPECT_NEAR(count, kCount / 4.0, kCount / 60.0);
  uint64_t told_count = 0;
  for (const auto& [key, histogram] : table.histograms()) told_count += histogram.timed_count;
  EXPECT_EQ(told_count, 2 * uint64_t{kCount});
  EXPECT_EQ(left_out_text(table), "/nccl/operations has one in 4 operations of NCCL (" +
                                      grouped(table.left_out_count()) +
                                      " rows are left out); the other tables of NCCL are of all");
}

TEST_F(NcclOperationsOfMany, up_to_the_limit_all_have_rows) {
  OperationTable table(&model_);
  for (const Group& group : model_.groups) feed(&table, group, kMaxOperationRows / 2);
  table.finish();
  EXPECT_EQ(table.rows().size(), kMaxOperationRows);
  EXPECT_EQ(table.left_out_count(), 0u);
  EXPECT_EQ(left_out_text(table), "");
}

TEST_F(NcclOperationsOfMany, take_no_memory_beyond_the_limit) {
  OperationTable table(&model_);
  for (const Group& group : model_.groups) {
    feed(&table, group, kMaxOperationRows);
    EXPECT_LE(table.rows().capacity(), kMaxOperationRows + 1);
  }
}

TEST_F(NcclOperationsOfMany, that_never_ended_are_not_thinned_out) {
  OperationTable table(&model_);
  for (const Group& group : model_.groups) {
    feed(&table, group, kMaxOperationRows);
    for (uint32_t call = 0; call < 100; ++call) {
      NcclOperation one = operation(8);
      one.call = kMaxOperationRows + call;
      one.flags = kNcclInFlight;
      table.add(one);
    }
  }
  table.finish();
  const auto in_flight_count = std::count_if(
      table.rows().begin(), table.rows().end(),
      [](const OperationRow& row) { return (row.operation.flags & kNcclInFlight) != 0; });
  EXPECT_EQ(in_flight_count, 200);
}

TEST_F(NcclOperationsOfMany, whose_kernels_are_timed_later_are_found_among_the_thinned_out) {
  constexpr uint32_t kCount = kMaxOperationRows;
  OperationTable table(&model_);
  for (const Group& group : model_.groups) {
    feed(&table, group, kCount);
    for (uint32_t call = 0; call < 300; call += 3) table.add_time(timed(call, 7));
  }
  table.finish();
  size_t timed_count = 0;
  for (const OperationRow& row : table.rows()) {
    const bool is_timed = (row.operation.flags & kNcclKernelTimed) != 0;
    ASSERT_EQ(is_timed, row.operation.call < 300 && row.operation.call % 3 == 0);
    timed_count += is_timed ? 1 : 0;
  }
  EXPECT_GT(timed_count, 20u);
}

TEST_F(NcclOperationsOfMany, of_shares_are_those_of_the_whole) {
  constexpr uint32_t kCount = kMaxOperationRows;
  const auto feed_one = [](OperationTable* table, const Group& group) {
    feed(table, group, group.id == 0 ? kCount : kCount / 2);
  };
  OperationTable whole(&model_);
  for (const Group& group : model_.groups) feed_one(&whole, group);
  whole.finish();
  OperationTable first(&model_);
  OperationTable second(&model_);
  const auto saved = test::saved_by_two(model_, &first, &second, feed_one);
  OperationTable combined(&model_);
  test::load_all(saved, [&](StateIn* in) { return combined.load(model_, in); });
  combined.finish();
  ASSERT_EQ(combined.rows().size(), whole.rows().size());
  EXPECT_EQ(combined.thinning(), whole.thinning());
  EXPECT_EQ(combined.left_out_count(), whole.left_out_count());
  for (size_t i = 0; i < whole.rows().size(); ++i) {
    ASSERT_EQ(combined.rows()[i].group, whole.rows()[i].group);
    ASSERT_EQ(combined.rows()[i].operation.call, whole.rows()[i].operation.call);
  }
}

spool::NcclSums refused(uint64_t count, uint8_t log2_bytes) {
  spool::NcclSums made{};
  made.sums.log2_bytes = log2_bytes;
  made.sums.count = count;
  made.sums.bytes = 64 * count;
  made.sums.host_ns = 30 * count;
  made.sums.timed_count = 2;
  made.sums.timed_bytes = 128;
  made.sums.gpu_ns = 400;
  made.sums.min_ns = 100;
  made.sums.max_ns = 300;
  made.sums.first_bucket = 6;
  made.by_duration = {1, 0, 1};
  return made;
}

TEST(NcclOperations, without_a_record_are_in_the_histograms_where_they_were_summed_up) {
  Model model = test::make_model(2);
  spool::Process process;
  process.nccl_sums[{7, 2, 6}] = refused(5, 6);
  process.nccl_sums[{7, 2, 200}] = refused(1, 200);  // what a spool may say
  model.groups[1].process = &process;
  OperationTable table;
  for (const Group& group : model.groups) {
    table.begin(group);
    NcclOperation last = operation(64, 1000);
    last.call = 9 * group.id;
    table.add(last);
  }
  table.finish();
  const Histogram& sums = table.histograms().at({0, 8, 6});
  EXPECT_EQ(sums.count, 2u + 5);
  EXPECT_EQ(sums.bytes, 64u * 7);
  EXPECT_EQ(sums.host_ns, 30u * 7);
  EXPECT_EQ(sums.timed_count, 2u + 2);
  EXPECT_EQ(sums.gpu_ns, 2000u + 400);
  EXPECT_EQ(sums.min_ns, 100u);
  EXPECT_EQ(sums.max_ns, 1000u);
  EXPECT_EQ(sums.by_duration[6], 1u);
  EXPECT_EQ(sums.by_duration[8], 1u);
  EXPECT_EQ(sums.by_duration[9], 2u);
  EXPECT_EQ(table.histograms().at({0, 8, 63}).count, 1u);
  EXPECT_EQ(table.missing_count(), 10u - 1 - 5 - 1);  // of ten calls
}

NcclOperation in_flight(uint32_t call) {
  NcclOperation one = operation(64);
  one.call = call;
  one.flags = kNcclInFlight;
  return one;
}

TEST(NcclOperations, that_were_told_in_flight_and_whose_end_was_refused_are_there_once) {
  Model model = test::make_model(2);
  spool::Process process;
  process.nccl_sums[{7, 2, 6}] = refused(3, 6);
  process.nccl_sums[{7, 2, 6}].sums.in_flight_count = 2;
  model.groups[0].process = &process;
  OperationTable table;
  for (const Group& group : model.groups) {
    table.begin(group);
    for (uint32_t call = 0; call < 5; ++call) {
      NcclOperation one = operation(call == 4 ? 128 : 64);  // the last one has sums of its own
      one.call = call;
      one.flags = kNcclInFlight;
      table.add(one);
    }
  }
  table.finish();
  std::vector<uint32_t> of_first;
  for (const OperationRow& row : table.rows())
    if (row.group == 0) of_first.push_back(row.operation.call);
  EXPECT_EQ(of_first, (std::vector<uint32_t>{2, 3, 4}));
  EXPECT_EQ(table.rows().size(), 3u + 5);
  EXPECT_EQ(table.histograms().at({0, 8, 6}).count, 3u + 2 + 4);
  EXPECT_EQ(table.missing_count(), 0u);
}

TEST(NcclOperations, that_are_forgotten_leave_later_ones_in_flight) {
  Model model = test::make_model(1);
  spool::Process process;
  process.nccl_sums[{7, 2, 6}] = refused(5, 6);
  process.nccl_sums[{7, 2, 6}].sums.in_flight_count = 5;
  model.groups[0].process = &process;
  OperationTable table;
  table.begin(model.groups[0]);
  for (uint32_t call = 0; call < InFlight::kMaxKept + 5; ++call) table.add(in_flight(call));
  table.finish();
  EXPECT_EQ(table.rows().size(), size_t{InFlight::kMaxKept});
}

/// The thread that enqueues is read first, the one that sees the ends behind it.
TEST(NcclOperations, that_end_after_they_were_forgotten_are_there_once) {
  constexpr uint32_t kCount = InFlight::kMaxKept + 100;
  constexpr uint32_t kRefused = 10;  // the ends of the last ones
  Model model = test::make_model(1);
  spool::Process process;
  process.nccl_sums[{7, 2, 6}] = refused(kRefused, 6);
  process.nccl_sums[{7, 2, 6}].sums.in_flight_count = kRefused;
  model.groups[0].process = &process;
  OperationTable table;
  table.begin(model.groups[0]);
  for (uint32_t call = 0; call < kCount; ++call) table.add(in_flight(call));
  for (uint32_t call = 0; call < kCount - kRefused; ++call) {
    NcclOperation one = operation(64);
    one.call = call;
    table.add(one);
  }
  table.finish();
  EXPECT_EQ(table.rows().size(), size_t{kCount - kRefused});
  EXPECT_EQ(table.histograms().at({0, 8, 6}).count, uint64_t{kCount});
}

TEST(NcclOperations, that_were_given_up_are_in_flight_whatever_the_sums_say) {
  Model model = test::make_model(1);
  spool::Process process;
  process.nccl_sums[{7, 2, 6}] = refused(1, 6);
  process.nccl_sums[{7, 2, 6}].sums.in_flight_count = 1;
  model.groups[0].process = &process;
  OperationTable table;
  table.begin(model.groups[0]);
  NcclOperation one = in_flight(0);
  one.flags |= kNcclAbandoned;
  table.add(one);
  table.finish();
  EXPECT_EQ(table.rows().size(), 1u);
}

TEST(NcclOperations, of_which_nothing_is_known_are_counted) {
  const Model model = test::make_model(2);
  OperationTable table;
  for (const Group& group : model.groups) {
    table.begin(group);
    for (const uint32_t call : {7u, 2u, 3u}) {
      NcclOperation one = operation(8);
      one.call = call;
      if (call != 3) table.add(one);
      if (call == 7) continue;
      one.flags = kNcclInFlight;  // of one that ended, and of one that did not
      table.add(one);
    }
    NcclOperation damaged = operation(8);
    damaged.call = InFlight::kMaxCalls;
    table.add(damaged);
  }
  table.finish();
  EXPECT_EQ(table.missing_count(), 2u * (8 - 3 - 1));
}

TEST(NcclOperations, of_which_only_the_end_is_not_known_are_missing_and_not_in_flight) {
  const Model model = test::make_model(1);
  OperationTable table;
  table.begin(model.groups[0]);
  for (uint32_t call = 0; call < 9; ++call) {
    NcclOperation one = in_flight(call);
    one.start_ns = 1000 + 100 * call;
    one.end_ns = one.start_ns + 10;
    if (call == 1) one.flags |= kNcclAbandoned;  // when it was given up says nothing
    table.add(one);
    if (call != 7) continue;
    one.end_ns += 50;
    one.flags = kNcclGpuTimed;  // all before it have ended, too
    table.add(one);
  }
  table.finish();
  std::vector<uint32_t> calls;
  for (const OperationRow& row : table.rows()) calls.push_back(row.operation.call);
  EXPECT_EQ(calls, (std::vector<uint32_t>{7, 1, 8}));
  EXPECT_EQ(table.missing_count(), 9u - 3);
}

TEST(NcclOperations, sizes_are_powers_of_two) {
  EXPECT_EQ(log2_of(0), 0u);
  EXPECT_EQ(log2_of(1), 0u);
  EXPECT_EQ(log2_of(2), 1u);
  EXPECT_EQ(log2_of(1023), 9u);
  EXPECT_EQ(log2_of(1024), 10u);
  EXPECT_EQ(log2_of(UINT64_MAX), 63u);
}

/// Some operations of each size, one of them in flight; as many as the rank's number.
void feed(OperationTable* table, const Group& group) {
  table->begin(group);
  for (uint32_t call = 0; call <= group.id; ++call) {
    NcclOperation one = operation(uint64_t{1} << call % 20, call % 3 == 0 ? 0 : 100 + call);
    one.call = 2 * call;  // of each second one nothing is known
    if (call == group.id) one.flags = kNcclInFlight;
    table->add(one);
  }
}

std::string text(const OperationTable& table) {
  std::ostringstream out;
  for (const OperationRow& row : table.rows())
    out << row.group << ' ' << row.operation.call << ' ' << row.operation.bytes << ' '
        << row.operation.communicator << ' ' << row.operation.region << '\n';
  for (const auto& [key, h] : table.histograms()) {
    out << std::get<0>(key) << ' ' << std::get<1>(key) << ' ' << std::get<2>(key) << ' ' << h.count
        << ' ' << h.bytes << ' ' << h.host_ns << ' ' << h.timed_count << ' ' << h.timed_bytes << ' '
        << h.gpu_ns << ' ' << h.min_ns << ' ' << h.max_ns << ' ' << h.by_duration[6] << '\n';
  }
  out << table.left_out_count() << ' ' << table.missing_count() << '\n';
  return out.str();
}

TEST(NcclOperations, of_shares_are_those_of_the_whole) {
  const Model model = test::make_model(40);
  OperationTable whole;
  for (const Group& group : model.groups) feed(&whole, group);
  whole.finish();
  OperationTable first;
  OperationTable second;
  const auto saved = test::saved_by_two(model, &first, &second, feed);
  OperationTable combined;
  test::load_all(saved, [&](StateIn* in) { return combined.load(model, in); });
  combined.finish();
  EXPECT_EQ(text(combined), text(whole));
  EXPECT_EQ(whole.rows().size(), 40u * 41 / 2);
  test::expect_beginnings_to_fail(saved[3], [&](StateIn* in) {
    OperationTable table;
    return table.load(model, in);
  });
  const Model small = test::make_model(3);
  StateIn in(saved[3]);
  EXPECT_FALSE(OperationTable().load(small, &in));
}

}  // namespace
}  // namespace aon::writers::nccl
