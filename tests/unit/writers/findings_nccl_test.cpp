// A CPU that a rank shares with NCCL's proxy thread, and what that thread's sends wait for.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <time.h>

#include <algorithm>
#include <deque>
#include <functional>

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
    findings.use_proxies(&proxies_);
    test::run_whole({&lateness_, &findings}, model_, [&](const Location& location) {
      NcclOperation& operation = operations_.emplace_back();
      operation.communicator = 7;
      operation.region = 10 - kAllReduce - (is_transfer_ ? location.group : 0);
      operation.bytes = 4096;
      operation.launch_ns = operation.gpu_begin_ns = kSecond;
      operation.gpu_ns = gpu_ns_ + location.group * std::max<uint64_t>(late_ns_, 1);
      operation.flags = kNcclGpuTimed;
      operation.type = NcclType::kFloat32;
      operation.call = 1;
      operation.peer = is_transfer_ ? static_cast<int32_t>(1 - location.group) : kNoPeer;
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
  uint64_t late_ns_ = 0;
  bool is_transfer_ = false;  ///< from rank 0 to rank 1
  nccl::ProxyWaits proxies_;
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

TEST_F(FindingsOfNccl, of_many_communicators_on_many_nodes_are_made_at_once) {
  constexpr uint32_t kCount = 20'000;
  job_.nodes.resize(2000);
  for (uint32_t node = 2; node < 2000; ++node) job_.nodes[node].host = "n" + std::to_string(node);
  model_.communicators.resize(kCount, model_.communicators[0]);
  const clock_t start = ::clock();
  EXPECT_THAT(lines(), Contains(HasSubstr("have one CPU each")));
  EXPECT_LT(::clock() - start, CLOCKS_PER_SEC);
}

TEST_F(FindingsOfNccl, who_is_late_to_transfers_is_told_without_one_ends_function) {
  is_transfer_ = true;
  late_ns_ = kSecond;
  model_.regions[kAllReduce] = {"ncclSend", RegionRole::kPointToPoint, Paradigm::kNccl};
  model_.regions[kAllReduce + 1] = {"ncclRecv", RegionRole::kPointToPoint, Paradigm::kNccl};
  EXPECT_THAT(lines(),
              Contains(HasSubstr("rank 0 on n1 came last to 1 of 1 operations of NCCL: the "
                                 "other GPUs waited 1.0 s for it, 1.0 s of it in "
                                 "transfers, each counted by itself")));
}

/// Ten AllReduces or more, of which the last take ten times as long.
class FindingsOfNetwork : public FindingsOfNccl {
 protected:
  FindingsOfNetwork() {
    for (spool::Process& process : processes_) process.regions[kNcclStepSite];
  }
  std::vector<std::string> lines_with(
      std::function<uint64_t(uint32_t rank, uint32_t call)> slow_network_ns) {
    Findings findings(nullptr);
    findings.use_nccl(&lateness_);
    test::run_whole({&lateness_, &findings}, model_, [&](const Location& location) {
      std::vector<Event> events{test::enter(1, 0)};
      for (uint32_t call = 0; call < 5 * slow_count_; ++call) {
        const bool is_slow = call >= 4 * slow_count_;
        NcclOperation& operation = operations_.emplace_back();
        operation.communicator = 7;
        operation.region = 10 - kAllReduce;
        operation.bytes = 4096;
        operation.launch_ns = operation.gpu_begin_ns = (call + 1) * kSecond;
        operation.gpu_ns = is_slow ? kSecond : kSecond / 10;
        operation.flags = kNcclGpuTimed;
        operation.sequence = operation.call = call;
        NcclProxyWork& work = works_.emplace_back();
        work.communicator = 7;
        work.call = call;
        work.peer = static_cast<int32_t>(1 - location.group);
        work.is_send = true;
        work.step_count = 1;
        work.network_ns = is_slow ? slow_network_ns(location.group, call) : kSecond / 100;
        work.gpu_ns = is_slow ? kSecond - work.network_ns : 0;
        events.push_back(test::event(EventKind::kNcclCall, 4 * kSecond, operation.region));
        events.back().request = reinterpret_cast<uint64_t>(&operation);
        events.push_back(test::event(EventKind::kNcclProxy, 4 * kSecond, 0));
        events.back().request = reinterpret_cast<uint64_t>(&work);
      }
      events.push_back(test::leave(10 * kSecond, 0));
      return events;
    });
    return findings.lines({});
  }
  uint32_t slow_count_ = 2;
  std::deque<NcclProxyWork> works_;
};

TEST_F(FindingsOfNetwork, name_the_link_in_place_of_what_it_may_be) {
  const auto told = lines_with([](uint32_t rank, uint32_t) { return rank == 1 ? kSecond : 0; });
  EXPECT_THAT(told, Contains("the network held up 2 operations of NCCL: their GPUs lost 3.6 s, "
                             "3.6 s of it by sends from rank 1 on n2 to rank 0 on n1, in 2"));
  EXPECT_THAT(told, Not(Contains(HasSubstr("with nobody late"))));
}

TEST_F(FindingsOfNetwork, name_no_link_where_both_wait) {
  EXPECT_THAT(lines_with([](uint32_t, uint32_t) { return kSecond; }),
              Contains("the network held up 2 operations of NCCL: their GPUs lost 3.6 s, no link "
                       "more than the others"));
}

TEST_F(FindingsOfNetwork, name_no_link_for_a_small_part) {
  slow_count_ = 10;
  const auto one_alone = [](uint32_t rank, uint32_t call) {
    return rank == 1 || call != 40 ? kSecond : 0;
  };
  EXPECT_THAT(lines_with(one_alone), Contains(HasSubstr("no link more than the others")));
}

TEST_F(FindingsOfNetwork, leave_open_what_the_network_does_not_explain) {
  const auto told = lines_with([](uint32_t, uint32_t) { return kSecond / 2; });
  EXPECT_THAT(told, Not(Contains(HasSubstr("held up"))));
  EXPECT_THAT(told, Contains(HasSubstr("with nobody late: the network, the GPUs or the links")));
}

class FindingsOfProxies : public FindingsOfNccl {
 protected:
  FindingsOfProxies() {
    for (spool::Process& process : processes_) process.binding.clear();
    proxies_.step_count = 1000;
  }
  void wait(uint64_t gpu_ns, uint64_t peer_ns, uint64_t network_ns) {
    proxies_.gpu_ns = gpu_ns;
    proxies_.peer_ns = peer_ns;
    proxies_.network_ns = network_ns;
  }
  void expect_nothing() { EXPECT_THAT(lines(), Not(Contains(HasSubstr("proxies")))); }
};

TEST_F(FindingsOfProxies, name_the_network) {
  wait(5, 10, 85);
  EXPECT_THAT(lines(), Contains("sends of NCCL's proxies wait for the network: 85 % of what their "
                                "steps wait"));
}

TEST_F(FindingsOfProxies, name_receivers_that_are_not_ready) {
  wait(5, 90, 5);
  proxies_.awaited = 1;
  proxies_.awaited_ns = 60;
  EXPECT_THAT(lines(), Contains("sends of NCCL's proxies wait for receivers that are not ready: 90 "
                                "% of what their steps wait, 67 % of that for rank 1 on n2"));
}

TEST_F(FindingsOfProxies, name_the_gpus_where_each_link_waits_for_them) {
  wait(90, 5, 5);
  EXPECT_THAT(lines(), Contains(HasSubstr("wait for their GPUs: 90 %")));
  proxies_.each_waits_for_gpu = false;
  expect_nothing();
}

TEST_F(FindingsOfProxies, name_nobody_where_a_late_rank_explains_it) {
  late_ns_ = kSecond;
  wait(90, 5, 5);
  expect_nothing();
  wait(5, 90, 5);
  expect_nothing();
}

TEST_F(FindingsOfProxies, name_nobody_where_it_is_not_decided) {
  wait(40, 20, 40);
  expect_nothing();
  wait(30, 5, 65);
  expect_nothing();
  wait(0, 0, 0);
  expect_nothing();
  wait(0, 0, 100);
  proxies_.step_count = 50;
  expect_nothing();
}

TEST_F(FindingsOfProxies, name_nobody_where_operations_take_no_time_to_speak_of) {
  wait(0, 0, 100);
  gpu_ns_ = kSecond / 100;
  expect_nothing();
}

TEST_F(FindingsOfProxies, name_a_slow_link) {
  wait(50, 0, 50);
  proxies_.slow = {.source = 0, .destination = 1, .bytes = 4096, .network_ns = 40, .ratio = 9.8};
  EXPECT_THAT(lines(),
              Contains("sends of NCCL's proxies from rank 0 on n1 to rank 1 on n2 wait 9.8 "
                       "times as long for the network as those of other links for as many "
                       "bytes (4 096 bytes in all)"));
  proxies_.slow.ratio = 1.0001;
  expect_nothing();
}

}  // namespace
}  // namespace aon::writers
