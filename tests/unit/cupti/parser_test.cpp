#include "plugins/cupti/parser.h"

#include <gtest/gtest.h>

#include "tests/unit/cupti/made_record.h"

namespace aon::cupti {
namespace {

using test::made_kernel;
using test::MadeRecord;

constexpr Quirks kQuirks = quirks_of(130001);

TEST(Parser, reads_a_kernel) {
  MadeRecord record = made_kernel("gemm", 1000, 3000);
  record.set(kernel::kStaticShared, int32_t{48}).set(kernel::kDynamicShared, int32_t{1024});
  record.set(kernel::kGraph, uint32_t{5}).set(kernel::kGraphNode, uint64_t{6});
  record.set(kernel::kRegisters, uint16_t{40});
  Work work;
  ASSERT_EQ(parse(record.data(), kQuirks, &work), Parsed::kWork);
  EXPECT_EQ(work.operation, DeviceOperation::kKernel);
  EXPECT_EQ(work.row, Row::kStream);
  EXPECT_STREQ(work.name, "gemm");
  EXPECT_EQ(work.start_ns, 1000u);
  EXPECT_EQ(work.end_ns, 3000u);
  EXPECT_EQ(work.device, 1u);
  EXPECT_EQ(work.context, 2u);
  EXPECT_EQ(work.stream, 7u);
  EXPECT_EQ(work.correlation, 99u);
  EXPECT_EQ(unpack_shape(work.grid, work.block, work.registers, work.shared_bytes),
            (KernelShape{{8, 4, 2}, {128, 2, 1}, 40, 1072}));
  EXPECT_EQ(work.graph, 5u);
  EXPECT_EQ(work.graph_node, 6u);
}

TEST(Parser, a_kernel_without_name_has_a_label) {
  const MadeRecord record = made_kernel(nullptr, 1000, 3000);
  Work work;
  ASSERT_EQ(parse(record.data(), kQuirks, &work), Parsed::kWork);
  EXPECT_EQ(work.name, nullptr);
  EXPECT_STREQ(work.label, "[CUDA kernel]");
}

TEST(Parser, the_largest_launch_of_a_device_is_told_exactly_and_what_is_larger_as_the_largest) {
  MadeRecord record = made_kernel("huge", 1, 2);
  const uint32_t grid[] = {0x7fffffff, 65535, 65535};
  const uint32_t block[] = {1024, 1024, 64};
  record.set(kernel::kGrid, grid).set(kernel::kBlock, block);
  Work work;
  ASSERT_EQ(parse(record.data(), kQuirks, &work), Parsed::kWork);
  EXPECT_EQ(unpack_shape(work.grid, work.block, 0, 0),
            (KernelShape{{0x7fffffff, 65535, 65535}, {1024, 1024, 64}, 0, 0}));
  const uint32_t no_grid[] = {0xffffffff, 65536, 70000};
  const uint32_t no_block[] = {5000, 4096, 256};
  record.set(kernel::kGrid, no_grid).set(kernel::kBlock, no_block);
  record.set(kernel::kRegisters, uint16_t{300});
  ASSERT_EQ(parse(record.data(), kQuirks, &work), Parsed::kWork);
  EXPECT_EQ(unpack_shape(work.grid, work.block, work.registers, 0),
            (KernelShape{{0xffffffff, 65535, 65535}, {4095, 4095, 255}, 255, 0}));
}

TEST(Parser, an_old_version_has_no_graph_fields) {
  MadeRecord record = made_kernel("gemm", 1, 2);
  record.set(kernel::kGraph, uint32_t{5});
  Work work;
  ASSERT_EQ(parse(record.data(), quirks_of(17), &work), Parsed::kWork);
  EXPECT_EQ(work.graph, 0u);
}

MadeRecord made_copy(Kind kind, uint8_t copy_kind) {
  MadeRecord record(kind, test::kCopyBytes);
  record.set(memcpy1::kCopyKind, copy_kind).set(memcpy1::kFrom, uint8_t{2});
  record.set(memcpy1::kTo, uint8_t{6}).set(memcpy1::kBytes, uint64_t{4096});
  record.set(memcpy1::kStart, uint64_t{10}).set(memcpy1::kEnd, uint64_t{30});
  record.set(memcpy1::kDevice, uint32_t{3}).set(memcpy1::kStream, uint32_t{14});
  record.set(memcpy1::kCorrelation, uint32_t{77});
  return record;
}

TEST(Parser, reads_a_copy) {
  Work work;
  ASSERT_EQ(parse(made_copy(Kind::kMemcpy, 1).data(), kQuirks, &work), Parsed::kWork);
  EXPECT_EQ(work.operation, DeviceOperation::kCopy);
  EXPECT_STREQ(work.label, "[CUDA memcpy HtoD]");
  EXPECT_EQ(work.from, DeviceMemory::kPinned);
  EXPECT_EQ(work.to, DeviceMemory::kDevice) << "static device memory is device memory";
  EXPECT_EQ(work.bytes, 4096u);
  EXPECT_EQ(work.device, 3u);
  EXPECT_EQ(work.stream, 14u);
  EXPECT_EQ(work.correlation, 77u);
}

TEST(Parser, a_copy_between_devices_has_its_correlation_elsewhere) {
  MadeRecord record = made_copy(Kind::kMemcpy2, 10);
  record.set(memcpy2::kCorrelation, uint32_t{78});
  Work work;
  ASSERT_EQ(parse(record.data(), kQuirks, &work), Parsed::kWork);
  EXPECT_STREQ(work.label, "[CUDA memcpy PtoP]");
  EXPECT_EQ(work.correlation, 78u);
}

TEST(Parser, a_copy_of_an_unknown_kind_is_still_a_copy) {
  Work work;
  ASSERT_EQ(parse(made_copy(Kind::kMemcpy, 200).data(), kQuirks, &work), Parsed::kWork);
  EXPECT_STREQ(work.label, "[CUDA memcpy]");
}

TEST(Parser, reads_a_set) {
  MadeRecord record(Kind::kMemset, test::kSetBytes);
  record.set(set::kBytes, uint64_t{64}).set(set::kStart, uint64_t{5}).set(set::kEnd, uint64_t{6});
  record.set(set::kMemory, uint16_t{5});
  Work work;
  ASSERT_EQ(parse(record.data(), kQuirks, &work), Parsed::kWork);
  EXPECT_EQ(work.operation, DeviceOperation::kSet);
  EXPECT_EQ(work.to, DeviceMemory::kManaged);
  EXPECT_EQ(work.bytes, 64u);
}

TEST(Parser, a_call_belongs_to_its_thread) {
  MadeRecord record(Kind::kDriver, test::kCallBytes);
  record.set(api::kFunction, uint32_t{307})
      .set(api::kStart, uint64_t{1})
      .set(api::kEnd, uint64_t{2});
  record.set(api::kThread, uint32_t{4711});
  Work work;
  ASSERT_EQ(parse(record.data(), kQuirks, &work), Parsed::kWork);
  EXPECT_EQ(work.row, Row::kCalls);
  EXPECT_EQ(work.stream, 4711u);
  EXPECT_EQ(work.function, 307u);
  EXPECT_TRUE(work.is_driver_call);
}

TEST(Parser, a_graph_stands_on_its_stream_and_waiting_does_not) {
  MadeRecord graph(Kind::kGraphTrace, test::kOtherBytes);
  graph.set(graph::kStart, uint64_t{1}).set(graph::kEnd, uint64_t{2});
  graph.set(graph::kStream, uint32_t{9}).set(graph::kGraph, uint32_t{3});
  Work work;
  ASSERT_EQ(parse(graph.data(), kQuirks, &work), Parsed::kWork);
  EXPECT_EQ(work.operation, DeviceOperation::kGraph);
  EXPECT_EQ(work.row, Row::kStream);
  EXPECT_EQ(work.stream, 9u);
  EXPECT_EQ(work.graph, 3u);
  MadeRecord wait(Kind::kSynchronization, test::kOtherBytes);
  wait.set(synchronization::kStart, uint64_t{1}).set(synchronization::kEnd, uint64_t{2});
  wait.set(synchronization::kType, uint32_t{3});
  ASSERT_EQ(parse(wait.data(), kQuirks, &work), Parsed::kWork);
  EXPECT_EQ(work.row, Row::kSynchronization);
  EXPECT_STREQ(work.label, "[CUDA stream synchronize]");
}

TEST(Parser, overhead_is_named_by_its_cause) {
  MadeRecord record(Kind::kOverhead, test::kOtherBytes);
  record.set(overhead::kStart, uint64_t{1}).set(overhead::kEnd, uint64_t{2});
  record.set(overhead::kType, uint32_t{2} << 16);
  Work work;
  ASSERT_EQ(parse(record.data(), kQuirks, &work), Parsed::kWork);
  EXPECT_EQ(work.row, Row::kOverhead);
  EXPECT_STREQ(work.label, "[CUPTI instrumentation]");
}

TEST(Parser, work_without_times_is_told_apart_from_damage) {
  Work work;
  EXPECT_EQ(parse(made_kernel("k", 0, 0).data(), kQuirks, &work), Parsed::kZeroTimes);
  EXPECT_EQ(parse(made_kernel("k", 100, 0).data(), kQuirks, &work), Parsed::kZeroTimes);
  EXPECT_EQ(parse(made_kernel("k", 100, 99).data(), kQuirks, &work), Parsed::kDamaged);
  EXPECT_EQ(parse(made_kernel("k", 100, 100).data(), kQuirks, &work), Parsed::kWork);
}

TEST(Parser, reads_an_external_id) {
  ExternalId id;
  ASSERT_TRUE(parse_external_id(test::made_external_id(3, 1ull << 40, 99).data(), &id));
  EXPECT_EQ(id.kind, ExternalKind::kCustom0);
  EXPECT_EQ(id.id, 1ull << 40);
  EXPECT_EQ(id.correlation, 99u);
  EXPECT_FALSE(parse_external_id(test::made_external_id(0, 1, 99).data(), &id));
  EXPECT_FALSE(parse_external_id(test::made_external_id(6, 1, 99).data(), &id)) << "unknown";
  EXPECT_FALSE(parse_external_id(test::made_external_id(3, 1, 0).data(), &id)) << "of no call";
  Work work;
  EXPECT_EQ(parse(test::made_external_id(3, 1, 99).data(), kQuirks, &work), Parsed::kIgnored);
}

TEST(Parser, other_kinds_are_ignored) {
  const MadeRecord record(static_cast<Kind>(8), 184);
  Work work;
  EXPECT_EQ(parse(record.data(), kQuirks, &work), Parsed::kIgnored);
}

TEST(Quirks, go_by_version) {
  EXPECT_FALSE(quirks_of(26).may_refuse_buffers);
  EXPECT_TRUE(quirks_of(27).may_refuse_buffers);
  EXPECT_TRUE(quirks_of(130000).hangs_on_disable);
  EXPECT_TRUE(quirks_of(28).hangs_on_disable) << "the note tells no first version";
  EXPECT_TRUE(quirks_of(28).crashes_on_flush);
  EXPECT_FALSE(quirks_of(130001).crashes_on_flush);
  EXPECT_FALSE(quirks_of(130101).slows_with_calls);
  EXPECT_TRUE(quirks_of(130200).slows_with_calls);
  EXPECT_FALSE(quirks_of(130300).slows_with_calls);
  EXPECT_FALSE(quirks_of(130001).hangs_on_disable);
}

TEST(Quirks, graphs_as_one_are_not_asked_of_a_version_that_may_crash) {
  EXPECT_TRUE(quirks_of(23).crashes_on_graphs);
  EXPECT_FALSE(quirks_of(24).crashes_on_graphs);
  EXPECT_TRUE(quirks_of(130000).lacks_device_waits);
  EXPECT_FALSE(quirks_of(130001).lacks_device_waits);
  EXPECT_FALSE(quirks_of(28).lacks_device_waits);
}

TEST(Parser, knows_graphs_their_nodes_and_the_calls_that_launch_them) {
  EXPECT_TRUE(quirks_of(130100).confuses_graph_calls);
  EXPECT_FALSE(quirks_of(130101).confuses_graph_calls);
  Work work;
  MadeRecord kernel = made_kernel("gemm", 1, 2);
  ASSERT_EQ(parse(kernel.data(), kQuirks, &work), Parsed::kWork);
  EXPECT_FALSE(is_of_graph(work));
  kernel.set(kernel::kGraph, uint32_t{5});
  ASSERT_EQ(parse(kernel.data(), kQuirks, &work), Parsed::kWork);
  EXPECT_TRUE(is_of_graph(work));
  MadeRecord call(Kind::kRuntime, test::kCallBytes);
  call.set(api::kFunction, uint32_t{311}).set(api::kStart, uint64_t{1}).set(api::kEnd, uint64_t{2});
  ASSERT_EQ(parse(call.data(), kQuirks, &work), Parsed::kWork);
  EXPECT_TRUE(is_of_graph(work)) << "cudaGraphLaunch";
  EXPECT_EQ(does_of(work), Does::kLaunchGraph);
  call.set(api::kFunction, uint32_t{211});
  ASSERT_EQ(parse(call.data(), kQuirks, &work), Parsed::kWork);
  EXPECT_FALSE(is_of_graph(work)) << "cudaLaunchKernel";
  EXPECT_EQ(does_of(work), Does::kLaunch);
  call.set(api::kFunction, uint32_t{31});
  ASSERT_EQ(parse(call.data(), kQuirks, &work), Parsed::kWork);
  EXPECT_EQ(does_of(work), Does::kOther) << "cudaMemcpy";
}

TEST(Parser, an_end_that_fails_ends_a_broken_capture) {
  MadeRecord call(Kind::kRuntime, test::kCallBytes);
  for (const int32_t result : {0, 1, 401, 901, 903, 904, 908}) {
    call.set(api::kFunction, uint32_t{320}).set(api::kResult, result);
    EXPECT_EQ(is_end_of_capture(call.data()), result == 901 || result == 904) << result;
    call.set(api::kFunction, uint32_t{498});
    EXPECT_FALSE(is_end_of_capture(call.data())) << "of the driver's numbers";
  }
  call.set(0, Kind::kDriver).set(api::kResult, 901);
  EXPECT_TRUE(is_end_of_capture(call.data())) << "cuStreamEndCapture_ptsz";
}

TEST(Parser, overhead_of_an_old_version_has_no_thread) {
  MadeRecord record(Kind::kOverhead, test::kOtherBytes);
  record.set(overhead::kType, uint32_t{1 << 16}).set(overhead::kObject, overhead::kThreadObject);
  record.set(overhead::kThread, uint32_t{4711});
  record.set(overhead::kStart, uint64_t{1}).set(overhead::kEnd, uint64_t{2});
  Work work;
  ASSERT_EQ(parse(record.data(), quirks_of(21), &work), Parsed::kWork);
  EXPECT_EQ(work.stream, 0u);
}

TEST(Parser, overhead_stands_with_the_thread_that_had_it) {
  MadeRecord record(Kind::kOverhead, test::kOtherBytes);
  record.set(overhead::kType, uint32_t{1 << 16}).set(overhead::kObject, overhead::kThreadObject);
  record.set(overhead::kThread, uint32_t{4711});
  record.set(overhead::kStart, uint64_t{1}).set(overhead::kEnd, uint64_t{2});
  Work work;
  ASSERT_EQ(parse(record.data(), kQuirks, &work), Parsed::kWork);
  EXPECT_EQ(work.stream, 4711u);
  record.set(overhead::kObject, uint32_t{4});  // a context
  ASSERT_EQ(parse(record.data(), kQuirks, &work), Parsed::kWork);
  EXPECT_EQ(work.stream, 0u);
}

}  // namespace
}  // namespace aon::cupti
