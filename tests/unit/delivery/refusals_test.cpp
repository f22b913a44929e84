// Who is not taken: whether for good or for now, and what is told.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <optional>

#include "tests/unit/delivery/delivery_case.h"

namespace aon::delivery {
namespace {

using cluster::Again;

/// While it lives this program gets no descriptor more; those that it has stay.
class NoDescriptor {
 public:
  NoDescriptor() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const int next = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    close(next);
    const rlimit none{static_cast<rlim_t>(next), before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    EXPECT_EQ(open("/dev/null", O_RDONLY | O_CLOEXEC), -1);
  }
  ~NoDescriptor() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }
  NoDescriptor(const NoDescriptor&) = delete;
  NoDescriptor& operator=(const NoDescriptor&) = delete;

 private:
  rlimit before_{};
};

class Refusals : public Delivery {
 protected:
  static std::optional<cluster::Refused> refusal(const UniqueFd& fd) {
    cluster::FrameBuffer frame;
    if (!cluster::receive_frame(fd.get(), now_ms() + 5000, &frame) ||
        frame.type() != cluster::FrameType::kRefused)
      return std::nullopt;
    return frame.take<cluster::Refused>();
  }
  std::string note() const {
    const auto held = read_lease(cluster::agent_lease(job_.string(), "n2"));
    return held ? held->note : "";
  }
};

TEST_F(Refusals, of_a_file_larger_than_disk_name_it_and_what_helps) {
  write(there_ / "definitions.aon", std::string(kNodeBytes + 1, 'x'));
  Courier courier(sender());
  ASSERT_TRUE(courier.connect(address_));
  static_cast<void>(courier.send_rest());
  const std::string reason =
      "definitions.aon has 4194305 bytes, --disk allows 4194304 of a node: give it more";
  EXPECT_EQ(told(&courier), reason);
  EXPECT_EQ(courier.again(), Again::kNever);
  EXPECT_EQ(note(), reason) << "the ledger has it from there";
}

TEST_F(Refusals, for_want_of_a_descriptor_are_for_now) {
  const UniqueFd early = connect_by_hand("n2");
  auto offer = make_frame<cluster::Offer>();
  offer.pid = kPid;
  offer.world_size = kWorld;
  {
    const NoDescriptor shortage;
    ASSERT_TRUE(say(early, offer));
    const auto refused = refusal(early);
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->again, Again::kSoon);
  }
  const UniqueFd again = offer_by_hand();
  ASSERT_TRUE(is_marked(Presence::kLive));
  {
    const NoDescriptor shortage;
    ASSERT_TRUE(say(again, part("p0.0.aon", "text")));
    const auto refused = refusal(again);
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->again, Again::kSoon);
    EXPECT_STREQ(refused->reason, "cannot write p0.0.aon: Too many open files");
  }
  const UniqueFd last = offer_by_hand();
  ASSERT_TRUE(say(last, part("p0.0.aon", "text")));
  ASSERT_EQ(send(last.get(), "text", 4, MSG_NOSIGNAL), 4);
  ASSERT_TRUE(say(last, make_frame<cluster::Complete>()));
  EXPECT_TRUE(is_marked(Presence::kDone));
  EXPECT_EQ(read(arrived("p0.0.aon")), "text");
}

/// What it brought is in the archive, whatever comes of a later agent with the same spool.
TEST_F(Refusals, leave_the_mark_of_an_earlier_one_that_has_gone) {
  const UniqueFd again = connect_by_hand("n2");
  {
    const UniqueFd first = offer_by_hand();
    ASSERT_TRUE(say(first, make_frame<cluster::Complete>()));
    ASSERT_TRUE(is_marked(Presence::kDone));
  }
  auto offer = make_frame<cluster::Offer>();
  offer.pid = kPid;
  offer.world_size = kWorld;
  {
    const NoDescriptor shortage;
    ASSERT_TRUE(say(again, offer));
    ASSERT_TRUE(refusal(again));
  }
  EXPECT_TRUE(is_marked(Presence::kDone)) << "nobody would make an archive with it";
  const UniqueFd last = offer_by_hand();
  EXPECT_TRUE(is_marked(Presence::kLive)) << "all of it comes again";
}

/// All of it is here: nobody is to bring it again.
TEST_F(Refusals, are_none_where_the_mark_has_to_wait_for_a_descriptor) {
  const UniqueFd fd = offer_by_hand();
  ASSERT_TRUE(say(fd, part("p0.0.aon", "")));
  ASSERT_TRUE(is_there("p0.0.aon", ""));
  {
    const NoDescriptor shortage;
    ASSERT_TRUE(say(fd, make_frame<cluster::Complete>()));
    usleep(800'000);
    EXPECT_FALSE(fs::exists(job_ / "agents" / "n2.done"));
  }
  EXPECT_TRUE(is_marked(Presence::kDone));
  EXPECT_TRUE(wait_until([&] { return !fs::exists(job_ / "agents" / "n2.lease"); }));
}

TEST_F(Refusals, by_another_agent_of_the_node_last_as_long_as_that_one) {
  UniqueFd other = connect_by_hand("n2");
  auto offer = make_frame<cluster::Offer>();
  offer.pid = kPid + 1;
  offer.world_size = kWorld;
  ASSERT_TRUE(say(other, offer));
  ASSERT_TRUE(is_marked(Presence::kLive));
  Courier courier(sender());
  ASSERT_TRUE(courier.connect(address_));
  EXPECT_EQ(told(&courier), "another agent of node n2 is there");
  EXPECT_EQ(courier.again(), Again::kSoon);
  ASSERT_TRUE(say(other, make_frame<cluster::Complete>()));
  ASSERT_TRUE(is_marked(Presence::kDone));
  ASSERT_TRUE(courier.connect(address_));
  ASSERT_TRUE(courier.send_rest());
  EXPECT_TRUE(wait_until([&] {
    const auto nodes = presence();
    return nodes.size() == 2 && nodes[0].presence == Presence::kDone &&
           nodes[1].presence == Presence::kDone;
  }));
  make_archive();
  EXPECT_EQ(told(&courier), "n1:" + job_.string());
}

TEST_F(Refusals, for_good_are_those_that_time_does_not_mend) {
  Sender other = sender();
  other.world_size = 16;
  Courier courier(other);
  ASSERT_TRUE(courier.connect(address_));
  EXPECT_NE(told(&courier), "");
  EXPECT_EQ(courier.again(), Again::kNever);
}

/// Who waits for an archive waits longer while one is made.
TEST_F(Refusals, of_waiting_are_put_off_by_an_assembly) {
  Courier courier(sender());
  ASSERT_TRUE(courier.connect(address_));
  ASSERT_TRUE(courier.send_rest());
  ASSERT_TRUE(is_marked(Presence::kDone));
  ASSERT_TRUE(courier.wait_assembled(2500));
  EXPECT_EQ(courier.assembling_ms(), 0) << "nobody makes one";
  const auto assembly = Lease::take((job_ / "assemble.lease").string());
  ASSERT_TRUE(assembly);
  EXPECT_TRUE(wait_until([&] {
    EXPECT_TRUE(courier.wait_assembled(50));
    return courier.assembling_ms() != 0;
  }));
}

}  // namespace
}  // namespace aon::delivery
