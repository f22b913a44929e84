#include "writers/assemble/device_spans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/unit/writers/spool_fixture.h"
#include "writers/external_id.h"

namespace aon::writers {
namespace {

constexpr uint32_t kStream = 3;
const std::unordered_map<uint32_t, uint32_t> kRegions = {{1, 0}, {2, 1}, {3, 2}};

Record span(uint32_t stream, uint32_t region, uint64_t start, uint64_t end, uint64_t bytes = 0) {
  Record record{};
  record.head.start_ticks = start;
  record.head.duration_ticks = static_cast<uint32_t>(end - start);
  record.head.kind = RecordKind::kDeviceSpan;
  record.head.slot_count = 2;
  record.head.id = region;
  record.head.a32 = stream;
  record.head.a64 = bytes;
  record.words[0] = 17 | static_cast<uint64_t>(DeviceOperation::kCopy) << 32;
  return record;
}

class DeviceSpansTest : public testing::Test {
 protected:
  /// "E1@10 L1@20": enters and leaves of a stream.
  std::string replay(uint32_t stream) {
    std::string text;
    Status status = spans_.replay(stream, clock_, kRegions, &outcome_, [&](auto events) {
      for (const Event& event : events) {
        all_.push_back(event);
        if (event.kind == EventKind::kDeviceWork) continue;
        text += text.empty() ? "" : " ";
        text += (event.kind == EventKind::kEnter ? "E" : "L") + std::to_string(event.region) + "@" +
                std::to_string(event.time_ns);
      }
      return Status();
    });
    EXPECT_TRUE(status);
    return text;
  }

  test::TemporaryFolder folder_;
  clock::ClockMap clock_;  // one tick per ns
  DeviceSpans spans_{folder_.path()};
  Outcome outcome_;
  std::vector<Event> all_;
};

TEST_F(DeviceSpansTest, brings_records_of_any_order_into_that_of_time) {
  ASSERT_TRUE(spans_.add(span(kStream, 2, 300, 400)));
  ASSERT_TRUE(spans_.add(span(kStream, 1, 100, 200)));
  ASSERT_TRUE(spans_.add(span(kStream, 3, 200, 250)));
  EXPECT_EQ(replay(kStream), "E1@100 L1@200 E3@200 L3@250 E2@300 L2@400");
  EXPECT_EQ(outcome_.device_overlap_count, 0u);
  EXPECT_EQ(spans_.restart(), 0u);
}

TEST_F(DeviceSpansTest, tells_streams_apart) {
  ASSERT_TRUE(spans_.add(span(5, 1, 100, 200)));
  ASSERT_TRUE(spans_.add(span(4, 2, 100, 200)));
  EXPECT_EQ(replay(4), "E2@100 L2@200");
  EXPECT_EQ(replay(5), "E1@100 L1@200");
  EXPECT_EQ(replay(6), "");
}

TEST_F(DeviceSpansTest, nests_what_lies_inside) {
  ASSERT_TRUE(spans_.add(span(kStream, 2, 120, 150)));
  ASSERT_TRUE(spans_.add(span(kStream, 1, 100, 200)));
  EXPECT_EQ(replay(kStream), "E1@100 E2@120 L2@150 L1@200");
}

TEST_F(DeviceSpansTest, moves_and_counts_what_overlaps) {
  ASSERT_TRUE(spans_.add(span(kStream, 1, 100, 200)));
  ASSERT_TRUE(spans_.add(span(kStream, 2, 150, 260)));
  ASSERT_TRUE(spans_.add(span(kStream, 3, 160, 190)));
  EXPECT_EQ(replay(kStream), "E1@100 L1@200 E2@200 E3@200 L3@200 L2@260");
  EXPECT_EQ(outcome_.device_overlap_count, 2u);
}

TEST_F(DeviceSpansTest, tells_the_devices_own_times_bytes_and_correlation) {
  ASSERT_TRUE(spans_.add(span(kStream, 1, 100, 200)));
  ASSERT_TRUE(spans_.add(span(kStream, 2, 150, 260, 4096)));
  replay(kStream);
  const auto copy = std::find_if(all_.rbegin(), all_.rend(), [](const Event& event) {
    return event.kind == EventKind::kDeviceWork;
  });
  ASSERT_NE(copy, all_.rend());
  EXPECT_EQ(copy->device_duration_ns(), 110u);
  EXPECT_EQ(copy->bytes, 4096u);
  EXPECT_EQ(copy->device_correlation(), 17u);
  EXPECT_EQ(copy->device_start_ns(), 150u);
  EXPECT_EQ(copy->device_operation(), DeviceOperation::kCopy);
}

Record external_id(uint64_t start, ExternalKind kind, uint64_t id) {
  Record record = span(kStream, 1, start, start, id);
  record.words[0] = 17 | static_cast<uint64_t>(kExternalIdOperation) << 32;
  record.words[2] = static_cast<uint32_t>(kind);
  return record;
}

TEST_F(DeviceSpansTest, external_ids_stand_before_their_call_and_take_no_time) {
  ASSERT_TRUE(spans_.add(span(kStream, 1, 100, 200)));
  ASSERT_TRUE(spans_.add(external_id(300, ExternalKind::kCustom0, 5)));
  ASSERT_TRUE(spans_.add(span(kStream, 2, 300, 400)));
  ASSERT_TRUE(spans_.add(external_id(300, ExternalKind::kUnknown, 6)));
  ASSERT_TRUE(spans_.add(span(kStream, 3, 500, 600)));
  EXPECT_EQ(replay(kStream), "E1@100 L1@200 E2@300 L2@400 E3@500 L3@600");
  EXPECT_EQ(outcome_.device_overlap_count, 0u);
  std::string text;
  for (size_t i = 0; i < all_.size(); ++i) {
    EXPECT_TRUE(i == 0 || all_[i].time_ns >= all_[i - 1].time_ns);
    if (all_[i].kind != EventKind::kDeviceWork) continue;
    const auto id = external_id_of(all_[i]);
    text += id ? external_kind_name(id->kind) + ("=" + std::to_string(id->id)) + " "
               : std::to_string(all_[i].time_ns) + " ";
    EXPECT_EQ(all_[i].device_correlation(), 17u);
  }
  EXPECT_TRUE(text == "100 CUSTOM0=5 UNKNOWN=6 300 500 " ||
              text == "100 UNKNOWN=6 CUSTOM0=5 300 500 ")
      << text;
}

TEST_F(DeviceSpansTest, external_ids_of_a_call_that_is_lost_are_of_no_other) {
  ASSERT_TRUE(spans_.add(external_id(100, ExternalKind::kCustom0, 5)));
  ASSERT_TRUE(spans_.add(span(kStream, 2, 300, 400)));
  ASSERT_TRUE(spans_.add(external_id(500, ExternalKind::kCustom0, 6)));
  EXPECT_EQ(replay(kStream), "E2@300 L2@400");
  EXPECT_EQ(all_.size(), 3u);
}

TEST_F(DeviceSpansTest, one_external_id_of_a_kind_is_a_calls) {
  ASSERT_TRUE(spans_.add(external_id(100, ExternalKind::kCustom0, 5)));
  ASSERT_TRUE(spans_.add(external_id(100, ExternalKind::kCustom0, 5)));
  ASSERT_TRUE(spans_.add(span(kStream, 1, 100, 200)));
  ASSERT_TRUE(spans_.add(span(kStream, 2, 100, 150)));
  EXPECT_EQ(replay(kStream), "E1@100 E2@100 L2@150 L1@200");
  EXPECT_EQ(std::count_if(all_.begin(), all_.end(),
                          [](const Event& event) {
                            return event.kind == EventKind::kDeviceWork && external_id_of(event);
                          }),
            1);
  EXPECT_TRUE(external_id_of(all_[0])) << "of the outer call";
}

TEST_F(DeviceSpansTest, an_external_id_of_an_unknown_kind_is_work_without_a_duration) {
  ASSERT_TRUE(spans_.add(external_id(100, static_cast<ExternalKind>(6), 5)));
  EXPECT_EQ(replay(kStream), "E1@100 L1@100");
}

TEST_F(DeviceSpansTest, tells_how_a_kernel_was_launched) {
  Record kernel = span(kStream, 1, 100, 200);
  const uint32_t block = pack_block(128, 2, 4);
  kernel.words[0] = 17 | uint64_t{block} << 40;
  kernel.words[2] = pack_grid(100'000, 65535, 3);
  kernel.words[3] = uint64_t{40} << 16 | uint64_t{block >> 24} << 24 | uint64_t{1072} << 32;
  ASSERT_TRUE(spans_.add(kernel));
  replay(kStream);
  EXPECT_EQ(all_[0].kernel_shape(), (KernelShape{{100'000, 65535, 3}, {128, 2, 4}, 40, 1072}));
  EXPECT_EQ(all_[0].device_correlation(), 17u);
  EXPECT_EQ(all_[0].device_duration_ns(), 100u);
}

TEST_F(DeviceSpansTest, a_kernel_of_an_older_spool_has_no_shape) {
  Record kernel = span(kStream, 1, 100, 200);
  kernel.words[0] = 17;
  kernel.words[2] = 32 | uint64_t{128} << 32;  // blocks, and threads of one
  kernel.words[3] = uint64_t{256} << 32;
  ASSERT_TRUE(spans_.add(kernel));
  ASSERT_TRUE(spans_.add(span(kStream, 2, 300, 400, 64)));
  replay(kStream);
  EXPECT_EQ(all_[0].kernel_shape(), std::nullopt);
  EXPECT_EQ(all_[0].bytes, 0u);
  EXPECT_EQ(all_[3].kernel_shape(), std::nullopt) << "a copy has none";
  EXPECT_EQ(all_[3].bytes, 64u);
}

TEST_F(DeviceSpansTest, unknown_regions_have_one_name_and_unknown_streams_are_counted) {
  ASSERT_TRUE(spans_.add(span(kStream, 77, 100, 200)));
  ASSERT_TRUE(spans_.add(span(kStream + 1, 1, 100, 200)));
  ASSERT_TRUE(spans_.add(span(1, 1, 100, 200)));
  EXPECT_EQ(replay(kStream), "E" + std::to_string(kUnknownRegion) + "@100 L" +
                                 std::to_string(kUnknownRegion) + "@200");
  EXPECT_EQ(spans_.restart(), 2u);
}

TEST_F(DeviceSpansTest, needs_no_more_memory_than_it_may) {
  DeviceSpans small(folder_.path(), UINT64_MAX, 4096);
  constexpr uint64_t kCount = 5000;
  for (uint64_t i = 0; i < kCount; ++i) {
    const uint64_t at = (i * 1237) % kCount;
    ASSERT_TRUE(small.add(span(kStream, 1, 1000 + at * 10, 1000 + at * 10 + 5)));
  }
  uint64_t enter_count = 0;
  uint64_t last_ns = 0;
  ASSERT_TRUE(small.replay(kStream, clock_, kRegions, &outcome_, [&](auto events) {
    for (const Event& event : events) {
      EXPECT_GE(event.time_ns, last_ns);
      last_ns = event.time_ns;
      enter_count += event.kind == EventKind::kEnter ? 1 : 0;
    }
    return Status();
  }));
  EXPECT_EQ(enter_count, kCount);
  EXPECT_EQ(small.restart(), 0u);
}

TEST_F(DeviceSpansTest, leaves_out_and_counts_what_ends_before_its_window) {
  DeviceSpans small(folder_.path(), 0, 4096);
  for (uint64_t i = 0; i < 50; ++i)
    ASSERT_TRUE(small.add(span(kStream, 1, 1000 + i * 10, 1000 + i * 10 + 5)));
  small.restart();
  small.begin_window(1105);
  Record call = span(kStream, 2, 100, 200);
  call.words[0] = static_cast<uint64_t>(DeviceOperation::kOther) << 32;
  ASSERT_TRUE(small.add(call));
  for (uint64_t i = 0; i < 50; ++i) {
    const uint64_t at = 1000 + (i * 7) % 50 * 10;
    ASSERT_TRUE(small.add(span(kStream, 1, at, at + 5)));
  }
  std::vector<uint64_t> times;
  ASSERT_TRUE(small.replay(kStream, clock_, kRegions, &outcome_, [&](auto events) {
    for (const Event& event : events)
      if (event.kind == EventKind::kEnter) times.push_back(event.time_ns);
    return Status();
  }));
  ASSERT_EQ(times.size(), 40u);
  EXPECT_EQ(times.front(), 1100u);
  EXPECT_EQ(times.back(), 1490u);
  EXPECT_EQ(small.left_out_work_count(), 10u);
  EXPECT_EQ(small.left_out_host_count(), 1u);
  EXPECT_EQ(small.restart(), 0u);
}

TEST_F(DeviceSpansTest, has_no_larger_file_than_it_may_whatever_comes) {
  DeviceSpans small(folder_.path(), 0, 4096);
  const uint64_t most = small.most_count();
  EXPECT_EQ(most, 4096 / DeviceSpans::kSpanBytes - 1);
  for (uint64_t i = 0; i < 2 * most; ++i)
    ASSERT_TRUE(small.add(span(kStream, 1, 1000 + i * 10, 1000 + i * 10 + 5)));
  EXPECT_EQ(small.left_out_work_count(), most);
  EXPECT_EQ(small.restart(), most);
}

TEST_F(DeviceSpansTest, of_a_store_that_failed_are_counted) {
  DeviceSpans failing("/nowhere", UINT64_MAX, 2 * DeviceSpans::kSpanBytes);
  ASSERT_TRUE(failing.add(span(kStream, 1, 100, 200)));
  ASSERT_FALSE(failing.add(span(kStream, 1, 300, 400)));
  failing.drop();
  ASSERT_TRUE(failing.add(span(kStream, 1, 500, 600)));
  EXPECT_EQ(failing.restart(), 0u) << "of a stream that is not known";
  EXPECT_EQ(failing.unsorted_count(), 3u);
  ASSERT_TRUE(failing.add(span(kStream, 1, 100, 200)));
  EXPECT_EQ(failing.unsorted_count(), 3u) << "of the process before";
}

TEST_F(DeviceSpansTest, what_was_left_out_is_a_gap_before_the_rest) {
  spans_.begin_window(2005);
  for (uint64_t i = 0; i < 1000; ++i)
    ASSERT_TRUE(spans_.add(span(kStream, 1, 1000 + i * 10, 1000 + i * 10 + 5)));
  ASSERT_TRUE(spans_.add(span(kStream + 1, 1, 500, 20000)));
  std::vector<Event> events;
  const auto keep = [&](std::span<const Event> some) {
    events.insert(events.end(), some.begin(), some.end());
    return Status();
  };
  ASSERT_TRUE(spans_.replay(kStream, clock_, kRegions, &outcome_, keep));
  ASSERT_GT(events.size(), 2u);
  EXPECT_EQ(events[0].kind, EventKind::kDeviceGap);
  EXPECT_EQ(events[0].time_ns, 1000u);
  EXPECT_EQ(events[0].bytes, 100u);
  EXPECT_EQ(events[0].request, 1995u);
  EXPECT_EQ(events[1].kind, EventKind::kDeviceWork);
  EXPECT_LE(events[0].time_ns + events[0].bytes_received, events[1].time_ns);
  events.clear();
  ASSERT_TRUE(spans_.replay(kStream + 1, clock_, kRegions, &outcome_, keep));
  EXPECT_EQ(events[0].time_ns, 500u) << "not behind the stream's own work";
  EXPECT_EQ(events[0].bytes_received, 0u);
  spans_.restart();
  ASSERT_TRUE(spans_.add(span(kStream, 1, 100, 200)));
  events.clear();
  ASSERT_TRUE(spans_.replay(kStream, clock_, kRegions, &outcome_, keep));
  EXPECT_EQ(events[0].kind, EventKind::kDeviceWork) << "of the process before";
}

/// One stream has no work of its own left, one was at work all the time, one lost nothing.
TEST_F(DeviceSpansTest, gaps_of_all_streams_sum_up_to_what_was_left_out) {
  spans_.begin_window(2000);
  for (uint64_t i = 0; i < 90; ++i)
    ASSERT_TRUE(spans_.add(span(i < 60 ? kStream : kStream + 1, 1, 1000 + i, 1005 + i)));
  ASSERT_TRUE(spans_.add(span(kStream + 1, 1, 500, 5000)));
  ASSERT_TRUE(spans_.add(span(kStream + 2, 1, 3000, 5000)));
  uint64_t sum = 0;
  for (const uint32_t stream : {kStream, kStream + 1, kStream + 2}) {
    all_.clear();
    replay(stream);
    ASSERT_FALSE(all_.empty());
    EXPECT_EQ(all_[0].kind, EventKind::kDeviceGap) << "the process lost some then";
    sum += all_[0].bytes;
  }
  EXPECT_EQ(all_[0].bytes, 0u);
  EXPECT_EQ(sum, spans_.left_out_work_count());
  EXPECT_EQ(sum, 90u);
}

TEST_F(DeviceSpansTest, a_copy_tells_between_which_memories) {
  Record record = span(kStream, 1, 100, 200, 64);
  record.words[3] = static_cast<uint64_t>(DeviceMemory::kPinned) |
                    static_cast<uint64_t>(DeviceMemory::kDevice) << 8;
  ASSERT_TRUE(spans_.add(record));
  record.words[3] = 0xffff;  // of a spool
  record.head.start_ticks = 300;
  ASSERT_TRUE(spans_.add(record));
  replay(kStream);
  EXPECT_EQ(all_[0].device_from(), DeviceMemory::kPinned);
  EXPECT_EQ(all_[0].device_to(), DeviceMemory::kDevice);
  const auto last = std::find_if(all_.rbegin(), all_.rend(), [](const Event& event) {
    return event.kind == EventKind::kDeviceWork;
  });
  EXPECT_EQ(last->device_from(), DeviceMemory::kUnknown);
}

}  // namespace
}  // namespace aon::writers
