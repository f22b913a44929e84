#include "core/cluster/address.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/squashed.h"
#include "tests/unit/temporary_folder.h"

namespace aon::cluster {
namespace {

namespace fs = std::filesystem;

class AddressFile : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(make_agents_folder(folder_)); }
  std::string path(const std::string& node) const { return agents_ + "/" + node + ".address"; }

  test::TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
  const std::string agents_ = agents_folder(folder_);
};

TEST_F(AddressFile, gives_back_what_was_written) {
  const AgentAddress written{random_token(), {{"10.0.0.1", 4711}, {"fe::1", 65535}}};
  ASSERT_TRUE(write_address(agents_, "n1", written));
  const Result<AgentAddress> read = read_address(agents_, "n1");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->token, written.token);
  ASSERT_EQ(read->endpoints.size(), 2u);
  EXPECT_EQ(read->endpoints[1].host, "fe::1");
  EXPECT_EQ(read->endpoints[1].port, 65535);
  struct stat status {};
  ASSERT_EQ(stat(path("n1").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_THAT(list_nodes(agents_), testing::ElementsAre("n1"));
  remove_address(agents_, "n1");
  EXPECT_THAT(list_nodes(agents_), testing::IsEmpty());
  EXPECT_EQ(read_address(agents_, "n1").error().code, Code::kNotFound);
}

TEST_F(AddressFile, made_by_somebody_else_is_refused) {
  ASSERT_TRUE(write_address(agents_, "n1", {random_token(), {{"10.0.0.1", 1}}}));
  fs::permissions(path("n1"), fs::perms::owner_read | fs::perms::others_write);
  EXPECT_EQ(read_address(agents_, "n1").error().code, Code::kInvalid);
  fs::create_symlink(path("n1"), path("n2"));
  EXPECT_FALSE(read_address(agents_, "n2"));
  ASSERT_EQ(mkfifo(path("n3").c_str(), 0600), 0);
  EXPECT_EQ(read_address(agents_, "n3").error().code, Code::kInvalid);
  if (geteuid() != 0) return;
  ASSERT_TRUE(write_address(agents_, "n4", {random_token(), {}}));
  ASSERT_EQ(chown(path("n4").c_str(), 12345, 12345), 0);
  EXPECT_EQ(read_address(agents_, "n4").error().code, Code::kInvalid);
}

TEST_F(AddressFile, is_read_where_the_file_system_shows_another_owner) {
  if (geteuid() != 0) GTEST_SKIP() << "making files of another user needs root";
  const std::string job = test::shown_folder(folder_);
  const std::string agents = agents_folder(job);
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  {
    const test::Squashed squashed;
    ASSERT_TRUE(make_agents_folder(job));
    ASSERT_TRUE(make_agents_folder(job)) << "another agent's";
    ASSERT_TRUE(write_address(agents, "n1", {random_token(), {}}));
    EXPECT_TRUE(read_address(agents, "n1"));
  }
  ASSERT_EQ(chown((agents + "/n1.address").c_str(), 0, 0), 0);
  EXPECT_EQ(read_address(agents, "n1").error().code, Code::kInvalid) << "only the folder";
  ASSERT_EQ(chown((agents + "/n1.address").c_str(), test::kShownOwner, 0), 0);
  ASSERT_EQ(chown(agents.c_str(), 0, 0), 0);
  EXPECT_EQ(read_address(agents, "n1").error().code, Code::kInvalid) << "only the file";
  ASSERT_EQ(chown(agents.c_str(), test::kShownOwner, 0), 0);
  EXPECT_EQ(read_address(agents, "n1").error().code, Code::kInvalid) << "of another user";
  EXPECT_EQ(make_agents_folder(job).error().code, Code::kInvalid);
}

TEST_F(AddressFile, lies_in_a_folder_that_becomes_private) {
  ASSERT_EQ(chmod(agents_.c_str(), 0770), 0);
  EXPECT_TRUE(make_agents_folder(folder_));
  EXPECT_EQ(fs::status(agents_).permissions(), fs::perms::owner_all);
  fs::rename(agents_, folder_ + "/elsewhere");
  fs::create_directory_symlink("elsewhere", agents_);
  EXPECT_EQ(make_agents_folder(folder_).error().code, Code::kInvalid);
  EXPECT_FALSE(read_address(agents_, "n1"));
}

/// It is this user's all the same.
TEST_F(AddressFile, lies_in_a_folder_that_cannot_be_opened_for_want_of_a_descriptor) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const Status status = make_agents_folder(folder_);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(status.error().code, Code::kIo) << status.error().message;
}

TEST_F(AddressFile, that_makes_no_sense_is_refused) {
  for (const char* text : {"", "aon-agent 2\n", "aon-agent 1\ntoken 12\nat 10.0.0.1 1\n",
                           "aon-agent 1\ntoken zz00000000000000000000000000000000000000000000000000"
                           "000000000000\n"}) {
    std::ofstream(path("n1")) << text;
    chmod(path("n1").c_str(), 0600);
    EXPECT_FALSE(read_address(agents_, "n1")) << text;
  }
}

TEST_F(AddressFile, planted_link_is_not_written_through) {
  const std::string victim = folder_ + "/victim";
  std::ofstream(victim) << "whole";
  fs::create_symlink(victim, path("n1"));
  fs::create_symlink(victim, agents_ + "/.n1.address");
  ASSERT_TRUE(write_address(agents_, "n1", {random_token(), {}}));
  EXPECT_FALSE(fs::is_symlink(path("n1")));
  std::string text;
  std::ifstream(victim) >> text;
  EXPECT_EQ(text, "whole");
}

TEST(Address, this_node_has_one_that_can_be_listened_on_and_reached) {
  const std::vector<std::string> hosts = own_addresses();
  ASSERT_FALSE(hosts.empty());
  EXPECT_LE(hosts.size(), kMaxEndpoints);
  uint16_t port = 0;
  const Result<UniqueFd> listener = listen_on(hosts[0], &port);
  ASSERT_TRUE(listener) << listener.error().message;
  EXPECT_TRUE(connect_to({hosts[0], port}, 1000));
}

std::string numeric_of(const char* four) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  EXPECT_EQ(inet_pton(AF_INET, four, &address.sin_addr), 1);
  return numeric(reinterpret_cast<const sockaddr*>(&address));
}

TEST(Address, of_a_link_alone_is_none_for_other_nodes) {
  EXPECT_EQ(numeric_of("169.253.255.255"), "169.253.255.255");
  EXPECT_EQ(numeric_of("169.254.0.1"), "");
  EXPECT_EQ(numeric_of("169.254.255.254"), "");
  EXPECT_EQ(numeric_of("169.255.0.1"), "169.255.0.1");
  EXPECT_EQ(numeric_of("10.254.169.254"), "10.254.169.254");
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  ASSERT_EQ(inet_pton(AF_INET6, "fe80::1", &six.sin6_addr), 1);
  EXPECT_EQ(numeric(reinterpret_cast<const sockaddr*>(&six)), "");
}

TEST(Address, nobody_there_is_an_error) {
  uint16_t port = 0;
  { const Result<UniqueFd> listener = listen_on("127.0.0.1", &port); }
  EXPECT_FALSE(connect_to({"127.0.0.1", port}, 1000));
  EXPECT_FALSE(connect_to({"not an address", 1}, 1000));
}

}  // namespace
}  // namespace aon::cluster
