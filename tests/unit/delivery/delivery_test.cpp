#include <gtest/gtest.h>
#include <sys/inotify.h>

#include "tests/unit/delivery/delivery_case.h"

namespace aon::delivery {
namespace {

TEST_F(Delivery, brings_closed_segments_early_and_the_rest_at_the_end) {
  const std::string large(3u << 20, 'x');
  write(there_ / "p0.0.aon", large);
  write(there_ / "p0.1.aon", "begun");
  write(there_ / "definitions.aon", "some");
  write(there_ / "topology.xml", "<topology/>");
  write(there_ / "not-ours.txt", "private");
  Courier courier(sender());
  ASSERT_TRUE(courier.connect(address_));
  ASSERT_TRUE(courier.send_new());
  EXPECT_TRUE(is_there("p0.0.aon", large));
  EXPECT_TRUE(is_there("topology.xml", "<topology/>"));
  EXPECT_TRUE(is_marked(Presence::kLive));
  write(there_ / "p0.1.aon", "begun anew");
  write(there_ / "definitions.aon", "all");
  ASSERT_TRUE(courier.send_rest());
  EXPECT_TRUE(is_there("p0.1.aon", "begun anew"));
  EXPECT_TRUE(is_there("definitions.aon", "all"));
  EXPECT_TRUE(is_marked(Presence::kDone));
  EXPECT_FALSE(fs::exists(arrived("not-ours.txt")));
  const auto early = courier.wait_assembled(300);
  ASSERT_TRUE(early);
  EXPECT_EQ(*early, "") << "no archive has it yet";
  make_archive();
  EXPECT_EQ(told(&courier), "n1:" + job_.string());
}

TEST_F(Delivery, tells_when_all_is_there_where_nobody_makes_an_archive) {
  stop_receiver();
  start_receiver(false);
  write(there_ / "definitions.aon", "all");
  Courier courier(sender());
  ASSERT_TRUE(courier.connect(address_));
  ASSERT_TRUE(courier.send_rest());
  EXPECT_EQ(told(&courier), "n1:" + job_.string());
  EXPECT_TRUE(is_there("definitions.aon", "all"));
}

TEST_F(Delivery, segments_that_went_are_gone_there_too) {
  write(there_ / "p0.0.aon", "old");
  write(there_ / "p0.1.aon", "new");
  Courier courier(sender());
  ASSERT_TRUE(courier.connect(address_));
  ASSERT_TRUE(courier.send_new());
  ASSERT_TRUE(is_there("p0.0.aon", "old"));
  fs::remove(there_ / "p0.0.aon");
  ASSERT_TRUE(courier.send_new());
  EXPECT_TRUE(wait_until([&] { return !fs::exists(arrived("p0.0.aon")); }));
  EXPECT_TRUE(fs::exists(arrived("p0.1.aon")));
}

TEST_F(Delivery, the_same_agent_may_come_again) {
  write(there_ / "p0.0.aon", "first");
  write(there_ / "p0.1.aon", "second");
  {
    Courier courier(sender());
    ASSERT_TRUE(courier.connect(address_));
    ASSERT_TRUE(courier.send_new());
    ASSERT_TRUE(is_there("p0.0.aon", "first"));
  }
  fs::remove(there_ / "p0.0.aon");
  Courier again(sender());
  ASSERT_TRUE(again.connect(address_));
  ASSERT_TRUE(again.send_rest());
  EXPECT_TRUE(is_marked(Presence::kDone));
  EXPECT_FALSE(fs::exists(arrived("p0.0.aon"))) << "what it no longer has";
  EXPECT_TRUE(is_there("p0.1.aon", "second"));
}

TEST_F(Delivery, an_archive_begun_before_it_came_again_does_not_have_it) {
  write(there_ / "definitions.aon", "all");
  auto first = std::make_unique<Courier>(sender());
  ASSERT_TRUE(first->connect(address_));
  ASSERT_TRUE(first->send_rest());
  ASSERT_TRUE(is_marked(Presence::kDone));
  const auto begun = presence();  // somebody reads what is there
  first.reset();
  Courier again(sender());
  ASSERT_TRUE(again.connect(address_));
  ASSERT_TRUE(is_marked(Presence::kLive));
  ASSERT_TRUE(again.send_rest());
  ASSERT_TRUE(is_marked(Presence::kDone));
  write_ledger(0);
  cluster::mark_assembled(job_.string(), begun);
  EXPECT_TRUE(is_marked(Presence::kDone));
  make_archive();
  EXPECT_EQ(told(&again), "n1:" + job_.string());
}

TEST_F(Delivery, a_later_agent_of_the_node_has_a_folder_of_its_own) {
  write(there_ / "definitions.aon", "of the first");
  Courier first(sender());
  ASSERT_TRUE(first.connect(address_));
  ASSERT_TRUE(first.send_rest());
  ASSERT_TRUE(is_marked(Presence::kDone));
  make_archive();
  EXPECT_EQ(told(&first), "n1:" + job_.string());
  write(there_ / "definitions.aon", "of the second");
  Sender other = sender();
  other.pid = kPid + 1;
  Courier second(other);
  ASSERT_TRUE(second.connect(address_));
  ASSERT_TRUE(second.send_rest());
  ASSERT_TRUE(is_marked(Presence::kDone));
  EXPECT_EQ(read(arrived("definitions.aon")), "of the first");
  EXPECT_EQ(read(job_ / "spool" / "n2~2" / "definitions.aon"), "of the second");
}

/// The first could not wait for an archive: what it brought is still in the spool of its node.
TEST_F(Delivery, a_later_agent_that_brings_it_all_again_takes_its_place) {
  write(there_ / "p0.0.aon", "of the first");
  {
    Courier first(sender());
    ASSERT_TRUE(first.connect(address_));
    ASSERT_TRUE(first.send_rest());
    ASSERT_TRUE(is_marked(Presence::kDone));
  }
  write(there_ / "p1.0.aon", "of the second");
  Sender other = sender();
  other.pid = kPid + 1;
  Courier second(other);
  ASSERT_TRUE(second.connect(address_));
  ASSERT_TRUE(is_marked(Presence::kLive));
  ASSERT_TRUE(second.send_rest());
  ASSERT_TRUE(is_marked(Presence::kDone));
  EXPECT_EQ(read(arrived("p0.0.aon")), "of the first");
  EXPECT_EQ(read(arrived("p1.0.aon")), "of the second");
  EXPECT_FALSE(fs::exists(job_ / "spool" / "n2~2")) << "the first's would be there twice";
}

TEST_F(Delivery, two_agents_of_a_node_at_a_time_are_one_too_many) {
  Courier first(sender());
  ASSERT_TRUE(first.connect(address_));
  ASSERT_TRUE(is_marked(Presence::kLive));
  Sender other = sender();
  other.pid = kPid + 1;
  Courier second(other);
  ASSERT_TRUE(second.connect(address_));
  EXPECT_EQ(told(&second), "another agent of node n2 is there");
  EXPECT_TRUE(first.beat());
}

TEST_F(Delivery, a_launch_of_another_size_is_another_one) {
  Sender other = sender();
  other.world_size = 16;
  Courier courier(other);
  ASSERT_TRUE(courier.connect(address_));
  EXPECT_EQ(told(&courier), "it is of a launch of 16 ranks, this one has 8");
  EXPECT_FALSE(fs::exists(job_ / "spool" / "n2"));
}

TEST_F(Delivery, what_was_cleaned_away_before_an_archive_had_it_is_not_confirmed) {
  write_ledger(1);  // of an earlier agent's archive
  write(there_ / "definitions.aon", "all");
  Courier courier(sender());
  ASSERT_TRUE(courier.connect(address_));
  ASSERT_TRUE(courier.send_rest());
  ASSERT_TRUE(is_marked(Presence::kDone));
  fs::remove_all(job_ / "agents");
  EXPECT_EQ(told(&courier), "it was removed before an archive had it");
  EXPECT_EQ(read(there_ / "definitions.aon"), "all");
}

TEST_F(Delivery, only_what_was_sent_is_removed) {
  write(there_ / "p0.0.aon", "closed");
  write(there_ / "p0.1.aon", "last");
  write(there_ / "definitions.aon", "all");
  Courier courier(sender());
  ASSERT_TRUE(courier.connect(address_));
  ASSERT_TRUE(courier.send_rest());
  write(there_ / "p0.1.aon", "a later agent's");
  write(there_ / "p1.0.aon", "of another process");
  courier.remove_sent();
  EXPECT_FALSE(fs::exists(there_ / "p0.0.aon"));
  EXPECT_FALSE(fs::exists(there_ / "definitions.aon"));
  EXPECT_EQ(read(there_ / "p0.1.aon"), "a later agent's");
  EXPECT_TRUE(fs::exists(there_ / "p1.0.aon"));
}

TEST_F(Delivery, rings_of_live_processes_stay_and_counts_of_those_without_come) {
  const std::string live = "fallback-" + std::to_string(getpid()) + "-" +
                           std::to_string(process_start_time_ticks(getpid())) + ".ring";
  write(there_ / live, "still written");
  write(there_ / "fallback-999999999-1.ring", "of the dead");
  write(there_ / "unrecorded", "11");
  fs::create_symlink("unrecorded", there_ / "unrecorded-7-1");
  Courier courier(sender());
  ASSERT_TRUE(courier.connect(address_));
  ASSERT_TRUE(courier.send_rest());
  ASSERT_TRUE(is_marked(Presence::kDone));
  EXPECT_TRUE(fs::exists(arrived("fallback-999999999-1.ring")));
  EXPECT_FALSE(fs::exists(arrived(live)));
  EXPECT_EQ(read(arrived("unrecorded")), "11");
  EXPECT_TRUE(fs::exists(arrived("unrecorded-7-1")));
  courier.remove_sent();
  EXPECT_TRUE(fs::exists(there_ / live));
  EXPECT_FALSE(fs::exists(there_ / "unrecorded"));
}

TEST_F(Delivery, a_ring_that_was_converted_before_the_rest_came_is_not_missed) {
  const std::string name = "fallback-999999999-1.ring";
  const UniqueFd fd = offer_by_hand();
  ASSERT_TRUE(say(fd, part(name, "")));
  ASSERT_TRUE(is_there(name, ""));
  fs::remove(arrived(name));
  ASSERT_TRUE(say(fd, make_frame<cluster::Complete>()));
  EXPECT_TRUE(is_marked(Presence::kDone));
}

TEST_F(Delivery, nobody_brings_the_receivers_own_node) {
  fs::create_directories(job_ / "spool" / "n1");
  write(job_ / "spool" / "n1" / "definitions.aon", "own");
  Courier courier(sender("n1"));
  ASSERT_TRUE(courier.connect(address_));
  EXPECT_EQ(told(&courier), "it has the name of this node");
  EXPECT_EQ(read(job_ / "spool" / "n1" / "definitions.aon"), "own");
}

TEST_F(Delivery, strangers_take_no_place_from_couriers) {
  std::vector<UniqueFd> strangers;
  for (size_t i = 0; i < 3 * cluster::kMaxNewcomers; ++i) {
    auto fd = cluster::connect_to(address_.endpoints[0], 1000);
    if (fd) strangers.push_back(std::move(*fd));
  }
  Courier courier(sender());
  ASSERT_TRUE(courier.connect(address_));
  EXPECT_TRUE(is_marked(Presence::kLive));
}

TEST_F(Delivery, without_the_token_nothing_is_taken) {
  cluster::AgentAddress wrong = address_;
  wrong.token[0] ^= 1;
  Courier courier(sender());
  EXPECT_FALSE(courier.connect(wrong));
  EXPECT_FALSE(fs::exists(job_ / "spool" / "n2"));
}

TEST_F(Delivery, names_that_are_none_of_a_spool_end_the_connection) {
  for (const char* name :
       {"../../aon.json", "/tmp/aon-planted", "aon.json", ".p0.0.aon.part", ""}) {
    const UniqueFd fd = offer_by_hand();
    ASSERT_TRUE(say(fd, part(name, "bad")));
    EXPECT_TRUE(is_dropped(fd)) << name;
  }
  EXPECT_FALSE(fs::exists(job_ / "aon.json"));
  EXPECT_TRUE(fs::is_empty(job_ / "spool" / "n2"));
}

TEST_F(Delivery, numbers_that_cannot_be_end_the_connection) {
  std::vector<cluster::Part> parts(6, part("p0.0.aon", "text"));
  parts[0].total_bytes = kNodeBytes + 1;
  parts[1].offset = UINT64_MAX;
  parts[2].byte_count = kMaxPartBytes + 1;
  parts[3].offset = 8;  // goes on with what was never begun
  parts[3].total_bytes = 64;
  parts[4].mode = static_cast<cluster::PartMode>(7);
  parts[5].mode = cluster::PartMode::kAppend;
  parts[5].offset = 4;
  parts[5].total_bytes = 8;
  for (size_t i = 0; i < parts.size(); ++i) {
    const UniqueFd fd = offer_by_hand();
    ASSERT_TRUE(say(fd, parts[i]));
    EXPECT_TRUE(is_dropped(fd)) << i;
  }
  EXPECT_FALSE(fs::exists(arrived("p0.0.aon")));
}

TEST_F(Delivery, a_node_brings_no_more_than_disk_allows) {
  write(there_ / "p0.0.aon", std::string(3u << 20, 'a'));
  write(there_ / "p0.1.aon", std::string(3u << 20, 'b'));
  Courier courier(sender());
  ASSERT_TRUE(courier.connect(address_));
  static_cast<void>(courier.send_rest());
  EXPECT_EQ(told(&courier), "it is larger than --disk allows");
  EXPECT_FALSE(fs::exists(arrived("p0.1.aon")));
}

TEST_F(Delivery, a_planted_link_is_not_followed) {
  fs::create_directories(root_ / "elsewhere");
  fs::create_directory_symlink(root_ / "elsewhere", job_ / "spool" / "n2");
  write(there_ / "definitions.aon", "all");
  Courier courier(sender());
  ASSERT_TRUE(courier.connect(address_));
  ASSERT_TRUE(courier.send_rest());
  EXPECT_TRUE(is_marked(Presence::kDone));
  EXPECT_TRUE(fs::is_empty(root_ / "elsewhere"));
}

TEST_F(Delivery, words_out_of_order_end_the_connection) {
  const UniqueFd early = connect_by_hand("n2");
  ASSERT_TRUE(say(early, make_frame<cluster::Complete>()));
  EXPECT_TRUE(is_dropped(early)) << "no offer";
  const UniqueFd late = offer_by_hand();
  ASSERT_TRUE(say(late, make_frame<cluster::Complete>()));
  ASSERT_TRUE(is_marked(Presence::kDone));
  ASSERT_TRUE(say(late, part("p0.0.aon", "more")));
  EXPECT_TRUE(is_dropped(late)) << "complete already";
}

/// Of a thousand nodes each mark is asked about, again and again.
TEST_F(Delivery, a_mark_that_was_read_is_not_read_again) {
  const UniqueFd fd = offer_by_hand();
  ASSERT_TRUE(is_marked(Presence::kLive));
  EXPECT_TRUE(is_mark_of_guest(job_.string(), presence().at(0)));
  // It went when its name was read, and before its text was: the node's agent comes again.
  EXPECT_TRUE(is_mark_of_guest(job_.string(), {"n2", Presence::kDone, "", "", 0}));
  ASSERT_TRUE(say(fd, make_frame<cluster::Complete>()));
  ASSERT_TRUE(is_marked(Presence::kDone));
  is_stopping_ = true;
  thread_.join();
  const cluster::NodePresence done = presence().at(0);
  const UniqueFd notify(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  ASSERT_GE(inotify_add_watch(notify.get(), (job_ / "agents").c_str(), IN_OPEN), 0);
  EXPECT_TRUE(is_mark_of_guest(job_.string(), done));
  char events[4096];
  EXPECT_EQ(::read(notify.get(), events, sizeof(events)), -1) << "something was opened";
  EXPECT_FALSE(is_mark_of_guest(job_.string(), {"n2", Presence::kDone, "n2 4711 0", "", 0}));
}

TEST_F(Delivery, a_receiver_that_goes_is_an_error_and_the_spool_stays) {
  write(there_ / "definitions.aon", "all");
  Courier courier(sender());
  ASSERT_TRUE(courier.connect(address_));
  ASSERT_TRUE(courier.send_new());
  stop_receiver();
  EXPECT_TRUE(wait_until([&] { return !courier.beat(); }));
  EXPECT_FALSE(courier.is_connected());
  EXPECT_EQ(read(there_ / "definitions.aon"), "all");
  start_receiver(true);
}

/// Else nobody would make an archive with it.
TEST_F(Delivery, a_courier_that_goes_after_all_of_it_came_is_a_guest_until_an_archive_has_it) {
  {
    const UniqueFd fd = offer_by_hand();
    ASSERT_TRUE(say(fd, make_frame<cluster::Complete>()));
    ASSERT_TRUE(is_marked(Presence::kDone));
  }
  is_stopping_ = true;
  thread_.join();
  for (int i = 0; i < 40; ++i) receiver_->step(20);
  EXPECT_EQ(receiver_->guest_count(), 1u);
  EXPECT_EQ(receiver_->open_count(), 0u);
  make_archive();
  EXPECT_TRUE(wait_until([&] {
    receiver_->step(20);
    return receiver_->guest_count() == 0;
  }));
}

TEST_F(Delivery, a_courier_that_goes_is_no_longer_kept_alive) {
  const fs::path lease = cluster::agent_lease(job_.string(), "n2");
  UniqueFd fd = offer_by_hand();
  ASSERT_TRUE(is_marked(Presence::kLive));
  // Beside one that stays, whose beats tell how much time there was.
  const UniqueFd other = offer_by_hand("n3");
  const fs::path beaten = cluster::agent_lease(job_.string(), "n3");
  ASSERT_TRUE(wait_until([&] { return fs::exists(beaten); }));
  const auto wait_for_beat = [&] {
    const auto before = fs::last_write_time(beaten);
    return wait_until([&] { return fs::last_write_time(beaten) != before; });
  };
  fd.reset();
  // The first may come before the receiver has seen the end.
  ASSERT_TRUE(wait_for_beat());
  const auto touched = fs::last_write_time(lease);
  ASSERT_TRUE(wait_for_beat());
  ASSERT_TRUE(wait_for_beat());
  EXPECT_EQ(fs::last_write_time(lease), touched);
}

}  // namespace
}  // namespace aon::delivery
