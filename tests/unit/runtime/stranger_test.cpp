// What listens at AON_SOCKET need not be our agent: the variable reaches nodes on which no aon-run
// ran, and anybody may have made a socket of that name.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/unit/runtime/child.h"
#include "tests/unit/runtime/fake_agent.h"
#include "tests/unit/temporary_folder.h"

extern const char* const kLifeChild;  // the build writes it

namespace aon::test {
namespace {

/// A program of one event, or `name`, that meets such an agent.
struct Meeting {
  explicit Meeting(const FakeAgentOptions& options, const std::string& name = "exit")
      : agent(options) {
    Child child({kLifeChild, name}, {{"AON_OUTPUT", folder.path()},
                                     {"AON_SOCKET", agent.socket_path()},
                                     {"AON_MEMORY", "2M"},
                                     {"AON_ATTACH_MS", "60000"}});
    if (name == "overflow") child.write("\n");
    code = child.wait();
    pid = child.pid();
    emitted = child.number_behind("emitted");
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
      if (entry.is_regular_file()) file = entry.path();
    }
  }

  void expect_file_because(NoAgent reason) const {
    auto image = ring::read_ring_file(file);
    ASSERT_TRUE(image) << image.error().message;
    EXPECT_EQ(image->identity.no_agent, reason);
    EXPECT_EQ(ring::RingReader(image->base(), image->geometry, false).slots_used(), 2u);
  }

  FakeAgent agent;
  const TemporaryFolder folder;
  std::string file;
  int code = -1;
  int32_t pid = -1;
  int64_t emitted = -1;
};

TEST(Stranger, of_another_user_learns_nothing_and_the_process_has_a_file) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can listen as another user";
  FakeAgentOptions options;
  options.user = 65534;
  Meeting meeting(options);
  EXPECT_EQ(meeting.code, 0);
  EXPECT_EQ(meeting.agent.process_count(), 0u);
  meeting.expect_file_because(NoAgent::kOfAnotherUser);
}

TEST(Stranger, whose_memory_can_be_cut_off_is_not_written_to) {
  FakeAgentOptions options;
  options.chunk_count = options.offered = 64;
  options.seals = false;
  Meeting meeting(options);
  EXPECT_EQ(meeting.code, 0);
  meeting.expect_file_because(NoAgent::kUnsealed);
}

TEST(Stranger, that_offers_chunks_beyond_the_ring_is_refused_them) {
  FakeAgentOptions options;
  options.chunk_count = options.offered = 8;
  options.drains = false;
  options.offers_too_much = true;
  Meeting meeting(options, "overflow");
  EXPECT_EQ(meeting.code, 0);
  TakenProcess taken = meeting.agent.finish(meeting.pid);
  EXPECT_GT(taken.refused(), 0u);
  EXPECT_EQ(taken.counted() + taken.refused(), static_cast<uint64_t>(meeting.emitted));
}

}  // namespace
}  // namespace aon::test
