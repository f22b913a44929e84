#include "core/agent/recording_notes.h"

#include <aon/definition.h>
#include <gtest/gtest.h>

#include <string>

#include "core/spool/format.h"

namespace aon::agent {
namespace {

class Notes : public testing::Test {
 protected:
  /// "reason | remedy" of the last definition since; "" without one.
  std::string said() {
    std::vector<InboxDefinition> definitions;
    std::map<uint32_t, uint64_t> refused;
    inbox_.take(&definitions, &refused);
    if (definitions.empty()) return "";
    const InboxDefinition& last = definitions.back();
    EXPECT_EQ(last.process, spool::kNodeProcess);
    EXPECT_EQ(last.type, DefinitionType::kProvider);
    const char* name =
        reinterpret_cast<const char*>(last.payload.data()) + sizeof(ProviderDefinition);
    EXPECT_STREQ(name, "recording");
    const std::string reason = name + std::string(name).size() + 1;
    return reason + " | " + (name + std::string(name).size() + reason.size() + 2);
  }

  Inbox inbox_;
  RecordingNotes notes_{&inbox_};
};

TEST_F(Notes, name_each_program_once) {
  notes_.add(RecordingNote::kLeftAlone, "/bin/a");
  EXPECT_EQ(said(),
            "left alone, as aon avoid lists it: /bin/a | aon avoid --remove PROGRAM, to "
            "try again");
  notes_.add(RecordingNote::kLeftAlone, "/bin/a");
  EXPECT_EQ(said(), "") << "nothing is new";
  notes_.add(RecordingNote::kLeftAlone, "/bin/b");
  EXPECT_TRUE(said().starts_with("left alone, as aon avoid lists it: /bin/a, /bin/b | "));
}

TEST_F(Notes, of_several_causes_are_told_together) {
  notes_.add(RecordingNote::kToldToEnd, "");
  notes_.add(RecordingNote::kNotLookedAt, "/bin/a (7)");
  notes_.add(RecordingNote::kKilledEarly, "process 8");
  EXPECT_EQ(said(),
            "not followed, for the kernel does not answer what it runs: /bin/a (7); killed before "
            "it was registered: process 8; the agent was told to end (SIGTERM) while programs ran; "
            "nothing since | aon-run --without mpi follows it from its start");
  notes_.add(RecordingNote::kToldToEnd, "");
  EXPECT_EQ(said(), "");
}

TEST_F(Notes, stay_short) {
  for (int i = 0; i < 1000; ++i)
    notes_.add(RecordingNote::kKilledEarly, "process " + std::to_string(i));
  const std::string text = said();
  EXPECT_NE(text.find("process 7 and 992 more"), std::string::npos) << text;
  EXPECT_EQ(text.find("process 8"), std::string::npos) << text;
  notes_.add(RecordingNote::kKilledEarly, "process 999");
  EXPECT_EQ(said(), "") << "it is said once a second";
}

}  // namespace
}  // namespace aon::agent
