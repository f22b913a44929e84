// Tables whose sums come from several processes: the same as if one had seen all events.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/unit/profile/one_rank.h"
#include "tests/unit/writers/two_shares.h"
#include "writers/profile/call_samples.h"
#include "writers/profile/device_work.h"
#include "writers/profile/io.h"
#include "writers/profile/messages.h"
#include "writers/profile/transfers.h"

namespace aon::writers::profile {
namespace {

constexpr uint32_t kRanks = 100;  // more than a table has partners of one
constexpr uint32_t kFiles = 80;

std::string text(const MessageTable& table) {
  std::ostringstream out;
  for (const MessageRow& r : table.rows())
    out << r.source << ' ' << r.destination << ' ' << r.count << ' ' << r.bytes << '\n';
  return out.str();
}

std::string text(const TransferTable& table) {
  std::ostringstream out;
  for (const TransferRow& r : table.rows())
    out << r.origin << ' ' << r.window << ' ' << r.target << ' ' << r.sum.put_count << ' '
        << r.sum.get_count << ' ' << r.sum.atomic_count << ' ' << r.sum.bytes_sent << ' '
        << r.sum.bytes_received << '\n';
  return out.str();
}

std::string text(const IoTable& table) {
  std::ostringstream out;
  for (const IoRow& r : table.rows())
    out << r.group << ' ' << r.file << ' ' << r.reads << ' ' << r.writes << ' ' << r.bytes_read
        << ' ' << r.bytes_written << ' ' << r.read_ns << ' ' << r.write_ns << ' ' << r.other_ns
        << ' ' << r.collective_count << ' ' << r.collective_bytes << '\n';
  return out.str();
}

std::string text(const CallSamples& samples) {
  std::ostringstream out;
  for (const CallSampleRow& r : samples.rows())
    out << r.group << ' ' << r.tid << ' ' << r.call_path << ' ' << r.count << ' ' << r.period
        << '\n';
  for (const CallPathCount& count : samples.counts())
    out << count.self << ' ' << count.total << '\n';
  out << samples.unknown_count() << '\n';
  return out.str();
}

std::string text(const DeviceWorkTable& table) {
  std::ostringstream out;
  for (const auto operation : {DeviceOperation::kKernel, DeviceOperation::kCopy}) {
    for (const DeviceRow& r : table.rows(operation))
      out << r.group << ' ' << r.device << ' ' << r.region << ' ' << int{r.operation == operation}
          << ' ' << r.count << ' ' << r.bytes << ' ' << r.total_ns << ' ' << r.min_ns << ' '
          << r.max_ns << '\n';
  }
  return out.str();
}

struct Job {
  Job() : model(test::make_model(kRanks)) {
    model.windows.push_back({"all", 0, WindowFlavour::kCreate});
    model.functions.push_back({"f", "", ""});
    for (uint32_t i = 0; i < 3; ++i)
      model.call_paths.push_back({i == 0 ? std::nullopt : std::optional(i - 1), 0, 0, i});
    for (Group& group : model.groups) {
      group.process = &process;
      group.window_map[5] = 0;
      group.call_path_map = {{10, 0}, {11, 1}, {12, 2}};
      for (uint32_t file = 0; file < kFiles; ++file) group.file_map[file + 1] = file;
    }
    for (Location& location : model.locations) {
      location.type = LocationType::kAcceleratorStream;
      location.device = location.group % 3;
    }
  }
  spool::Process process{};
  Model model;
};

/// Rank r: something to each rank up to r, and to its own events' liking.
std::vector<Event> events_of(uint32_t rank) {
  std::vector<Event> events;
  for (uint32_t peer = 0; peer <= rank; ++peer) {
    const auto to = static_cast<int32_t>(peer);
    events.push_back(test::send(peer, to, 10 + rank));
    Event put = test::event(EventKind::kRmaTransfer, peer, 0);
    put.communicator = 5;
    put.peer = to;
    put.tag = static_cast<int32_t>(peer % 2 == 0 ? RmaOperation::kPut : RmaOperation::kFetchAndOp);
    put.bytes = put.bytes_received = 8;
    events.push_back(put);
    events.push_back(test::enter(100 * peer, 0));
    Event write = test::event(EventKind::kIoBegin, 100 * peer, 0);
    write.communicator = peer % kFiles + 1;
    write.peer = static_cast<int32_t>(IoOperation::kWrite);
    write.tag = peer % 2 == 0 ? int32_t{kIoCollective} : 0;
    write.bytes = 3;
    events.push_back(write);
    write.kind = EventKind::kIoComplete;
    events.push_back(write);
    events.push_back(test::leave(100 * peer + rank, 0));
    Event sample = test::event(EventKind::kCallSample, peer, 10 + peer % 4);  // 13: no path
    sample.peer = 1000 + static_cast<int32_t>(peer % 2);
    sample.bytes = 7;
    events.push_back(sample);
    Event work = test::event(EventKind::kDeviceWork, peer, peer % 3);
    work.peer =
        static_cast<int32_t>(peer % 2 == 0 ? DeviceOperation::kKernel : DeviceOperation::kCopy);
    work.bytes = peer;
    work.bytes_received = 50 + (peer * 7) % 13;
    events.push_back(work);
  }
  return events;
}

template <class Table>
void begin(Table* table, const Model& model, const Group& group) {
  if constexpr (std::is_same_v<Table, DeviceWorkTable>) {
    table->begin(group, model.locations[group.id]);
  } else {
    table->begin(group);
  }
}

template <class Table>
class TableOfShares : public testing::Test {
 protected:
  void feed(Table* table, const Group& group) const {
    begin(table, job_.model, group);
    for (const Event& event : events_of(group.id)) table->add(event);
  }
  std::vector<std::string> saved() const {
    Table first(job_.model);
    Table second(job_.model);
    return test::saved_by_two(job_.model, &first, &second,
                              [&](Table* t, const Group& group) { feed(t, group); });
  }
  std::string whole() const {
    Table table(job_.model);
    for (const Group& group : job_.model.groups) feed(&table, group);
    return text(table);
  }
  Job job_;
};

using Tables = testing::Types<MessageTable, TransferTable, IoTable, CallSamples, DeviceWorkTable>;
TYPED_TEST_SUITE(TableOfShares, Tables);

TYPED_TEST(TableOfShares, adds_up_to_the_whole) {
  TypeParam combined(this->job_.model);
  test::load_all(this->saved(), [&](StateIn* in) { return combined.load(in); });
  EXPECT_EQ(text(combined), this->whole());
  EXPECT_GT(this->whole().size(), 1000u);
}

TYPED_TEST(TableOfShares, adds_up_where_a_process_comes_in_two_parts) {
  const std::vector<std::string> saved = this->saved();
  TypeParam twice(this->job_.model);
  const Group& group = this->job_.model.groups[3];
  for (int i = 0; i < 2; ++i) this->feed(&twice, group);
  TypeParam loaded_twice(this->job_.model);
  test::load_all({saved[3], saved[3]}, [&](StateIn* in) { return loaded_twice.load(in); });
  EXPECT_EQ(text(loaded_twice), text(twice));
}

TYPED_TEST(TableOfShares, starts_each_process_from_nothing) {
  TypeParam share(this->job_.model);
  const Group& group = this->job_.model.groups[3];
  std::string bytes[3];
  for (std::string& one : bytes) {
    this->feed(&share, group);
    StateOut out;
    share.save(&out);
    one = out.bytes();
  }
  EXPECT_EQ(bytes[1].size(), bytes[0].size());
  TypeParam first(this->job_.model);
  TypeParam last(this->job_.model);
  test::load_all({bytes[0]}, [&](StateIn* in) { return first.load(in); });
  test::load_all({bytes[2]}, [&](StateIn* in) { return last.load(in); });
  EXPECT_EQ(text(first), text(last));
}

TYPED_TEST(TableOfShares, refuses_bytes_that_end_too_soon) {
  test::expect_beginnings_to_fail(this->saved()[5], [&](StateIn* in) {
    TypeParam table(this->job_.model);
    return table.load(in);
  });
}

TYPED_TEST(TableOfShares, refuses_processes_that_the_model_does_not_have) {
  const std::vector<std::string> saved = this->saved();
  const Model small = test::make_model(10);
  TypeParam table(small);
  StateIn in(saved[50]);
  const Status status = table.load(&in);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kDamaged);
}

TEST(MessagesOfShares, refuse_a_destination_that_the_model_does_not_have) {
  const Model large = test::make_model(20);
  MessageTable share(large);
  share.begin(large.groups[0]);
  share.add(test::send(0, 15, 1));
  StateOut out;
  share.save(&out);
  const Model small = test::make_model(10);
  MessageTable table(small);
  StateIn in(out.bytes());
  EXPECT_FALSE(table.load(&in));
}

TEST(CallSamplesOfShares, refuse_a_path_that_the_model_does_not_have) {
  const Job job;
  CallSamples share(job.model);
  share.begin(job.model.groups[0]);
  share.add(test::event(EventKind::kCallSample, 0, 12));
  StateOut out;
  share.save(&out);
  Job other;
  other.model.call_paths.pop_back();
  CallSamples samples(other.model);
  StateIn in(out.bytes());
  EXPECT_FALSE(samples.load(&in));
}

}  // namespace
}  // namespace aon::writers::profile
