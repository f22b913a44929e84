// A CPU that a rank shares with NCCL's proxy thread.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "tests/unit/profile/one_rank.h"
#include "tests/unit/writers/shares.h"
#include "writers/ledger/findings.h"

namespace aon::writers {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr uint32_t kAllReduce = 6;  // global; local 10 - that
constexpr uint64_t kSecond = 1'000'000'000;

/// Two ranks on two nodes for ten seconds, two of which are one AllReduce.
class FindingsOfNccl : public testing::Test {
 protected:
  FindingsOfNccl() : model_(test::make_model(2)), lateness_("/tmp") {
    model_.regions[kAllReduce] = {"ncclAllReduce", RegionRole::kAllToAll, Paradigm::kNccl};
    model_.communicators[0].rank_count = 2;
    model_.communicators[0].kind = CommunicatorKind::kNccl;
    model_.end_ns = 10 * kSecond;
    job_.nodes.resize(2);
    model_.job = &job_;
    for (Group& group : model_.groups) {
      group.node = group.id;
      job_.nodes[group.id].host = "n" + std::to_string(group.id + 1);
      CommunicatorDefinition definition{};
      definition.kind = CommunicatorKind::kNccl;
      definition.rank = group.id;
      processes_[group.id].communicators[7].definition = definition;
      processes_[group.id].binding = "3";
      group.process = &processes_[group.id];
    }
  }

  std::vector<std::string> lines() {
    Findings findings(nullptr);
    findings.use_nccl(&lateness_);
    test::run_whole({&lateness_, &findings}, model_, [&](const Location& location) {
      NcclOperation& operation = operations_.emplace_back();
      operation.communicator = 7;
      operation.region = 10 - kAllReduce;
      operation.bytes = 4096;
      operation.launch_ns = operation.gpu_begin_ns = kSecond;
      operation.gpu_ns = gpu_ns_ + location.group;
      operation.flags = kNcclGpuTimed;
      operation.type = NcclType::kFloat32;
      operation.call = 1;
      operation.peer = kNoPeer;
      Event event = test::event(EventKind::kNcclCall, 4 * kSecond, operation.region);
      event.request = reinterpret_cast<uint64_t>(&operation);
      return std::vector<Event>{test::enter(1, 0), event, test::leave(10 * kSecond, 0)};
    });
    return findings.lines({});
  }

  Model model_;
  spool::Job job_;
  spool::Process processes_[2];
  std::deque<NcclOperation> operations_;
  nccl::LatenessAnalysis lateness_;
  uint64_t gpu_ns_ = 2 * kSecond;
};

TEST_F(FindingsOfNccl, one_cpu_for_program_and_proxy_is_told) {
  EXPECT_THAT(lines(), Contains(HasSubstr("ranks 0 on n1, 1 on n2 have one CPU each, which NCCL's "
                                          "proxy thread shares with the program")));
}

TEST_F(FindingsOfNccl, one_of_them_alone_is_named) {
  processes_[0].binding = "2-3";
  EXPECT_THAT(lines(), Contains(HasSubstr("rank 1 on n2 has one CPU, which")));
}

TEST_F(FindingsOfNccl, on_one_node_it_has_nothing_to_move) {
  model_.groups[1].node = 0;
  EXPECT_THAT(lines(), Not(Contains(HasSubstr("one CPU"))));
}

TEST_F(FindingsOfNccl, operations_that_take_no_time_to_speak_of_are_none) {
  gpu_ns_ = kSecond / 100;
  EXPECT_THAT(lines(), Not(Contains(HasSubstr("one CPU"))));
}

TEST_F(FindingsOfNccl, where_the_binding_is_not_known_nothing_is_told) {
  for (spool::Process& process : processes_) process.binding.clear();
  EXPECT_THAT(lines(), Not(Contains(HasSubstr("one CPU"))));
}

}  // namespace
}  // namespace aon::writers
