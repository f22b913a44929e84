/// Spools of ranks that call AllReduces of NCCL, each in a kernel that CUPTI told.
#pragma once

#include <aon/device.h>
#include <aon/nccl.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "tests/unit/writers/spool_fixture.h"

namespace aon::bench {

constexpr uint32_t kAllReduce = 1;  // local regions
constexpr uint32_t kKernel = 2;
constexpr uint32_t kLaunch = 3;
constexpr uint32_t kStreamOfDevice = 1;
constexpr uint32_t kStreamOfCalls = 2;
constexpr uint16_t kProgramSlot = 1;
constexpr uint16_t kCuptiSlot = 2;
constexpr uint64_t kPeriodNs = 20'000;  ///< from one operation to the next

/// A call of CUDA or a kernel, as the thread of CUPTI's records writes it.
inline Record device_record(uint32_t stream, uint32_t region, uint64_t start, uint64_t duration,
                            uint32_t correlation, DeviceOperation operation) {
  Record record{};
  record.head.kind = RecordKind::kDeviceSpan;
  record.head.slot_count = 2;
  record.head.id = region;
  record.head.start_ticks = start;
  record.head.duration_ticks = static_cast<uint32_t>(duration);
  record.head.a32 = stream;
  record.words[0] = correlation | uint64_t{static_cast<uint8_t>(operation)} << 32;
  return record;
}

inline void define_nccl_rank(test::NodeSpool* node, uint32_t rank, uint32_t rank_count) {
  node->add_process(rank, static_cast<int32_t>(rank), rank_count, {});
  const auto region = [&](uint32_t id, RegionRole role, Paradigm paradigm, const char* name) {
    node->define(rank, DefinitionType::kRegion, RegionDefinition{id, role, paradigm, 0}, {name});
  };
  region(kAllReduce, RegionRole::kAllToAll, Paradigm::kNccl, "ncclAllReduce");
  region(kKernel, RegionRole::kFunction, Paradigm::kCuda,
         "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  region(kLaunch, RegionRole::kFunction, Paradigm::kCuda, "cuLaunchKernelEx");
  node->define(rank, DefinitionType::kDevice, DeviceDefinition{0, 0, {}}, {"GPU", "0000:01"});
  node->define(rank, DefinitionType::kDeviceStream,
               DeviceStreamDefinition{kStreamOfDevice, 0, 0, 7}, {""});
  node->define(rank, DefinitionType::kDeviceStream,
               DeviceStreamDefinition{kStreamOfCalls, kNoDevice, 0, 1000 + rank}, {"CUDA calls"});
  CommunicatorDefinition communicator{};
  communicator.identity = 4711;
  communicator.id = kFirstNcclCommunicator;
  communicator.size = rank_count;
  communicator.rank = rank;
  communicator.kind = CommunicatorKind::kNccl;
  communicator.reserved[kNcclDevice] = 1;
  node->define(rank, DefinitionType::kCommunicator, communicator, {"world", "0x4711"});
}

/// `count` operations of all ranks together. The last rank comes late to each tenth.
inline void write_nccl_spool(const std::filesystem::path& job, uint64_t count,
                             uint32_t rank_count) {
  constexpr uint64_t kBlock = 8192;
  const uint64_t of_each = count / rank_count;
  test::NodeSpool node(job, "bench", 2 + of_each * kPeriodNs / 1'000'000'000);
  for (uint32_t rank = 0; rank < rank_count; ++rank) define_nccl_rank(&node, rank, rank_count);
  for (uint32_t rank = 0; rank < rank_count; ++rank) {
    for (uint64_t begin = 0; begin < of_each; begin += kBlock) {
      std::vector<Record> operations;
      std::vector<Record> work;
      for (uint64_t i = begin; i < std::min(of_each, begin + kBlock); ++i) {
        const uint64_t now = 1000 + i * kPeriodNs;
        const auto number = static_cast<uint32_t>(i + 1);
        const uint64_t kernel_ns = i % 10 == 0 && rank + 1 != rank_count ? 15'000 : 3000 + i % 97;
        Record called = test::nccl_record(kAllReduce, now, now + 2500, 0, 1024u << (i % 12),
                                          kFirstNcclCommunicator);
        called.words[0] = number;
        called.words[1] = (called.words[1] & ~uint64_t{0xffffffff}) | number;
        called.words[2] = now + 1000;
        operations.push_back(called);
        work.push_back(device_record(kStreamOfCalls, kLaunch, now + 1100, 900, number,
                                     DeviceOperation::kOther));
        work.push_back(device_record(kStreamOfDevice, kKernel, now + 2500, kernel_ns, number,
                                     DeviceOperation::kKernel));
      }
      node.add_records(rank, kProgramSlot, operations);
      node.add_records(rank, kCuptiSlot, work);
    }
  }
  node.finish();
}

}  // namespace aon::bench
