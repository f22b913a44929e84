#include "core/agent/recording_notes.h"

#include <aon/definition.h>
#include <gtest/gtest.h>

#include <memory>
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
  std::unique_ptr<KeptNotes> kept_ = std::make_unique<KeptNotes>();
  RecordingNotes notes_{&inbox_, kept_.get()};
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

TEST_F(Notes, of_a_killed_worker_are_the_next_ones) {
  notes_.tell_again();
  EXPECT_EQ(said(), "") << "there was none";
  notes_.add(RecordingNote::kTooManyBelow, "");
  notes_.add(RecordingNote::kLeftAlone, std::string(600, 'a'));
  for (int i = 0; i < 10; ++i)
    notes_.add(RecordingNote::kKilledEarly, "process " + std::to_string(i));
  const std::string before = said();
  RecordingNotes next(&inbox_, kept_.get());
  next.tell_again();
  EXPECT_EQ(said(), before) << "the last words may have gone with the first worker";
  for (const char* known : {"process 1", "process 9"}) next.add(RecordingNote::kKilledEarly, known);
  next.add(RecordingNote::kLeftAlone, std::string(600, 'a'));
  EXPECT_EQ(said(), "") << "nothing is new";
  next.add(RecordingNote::kKilledEarly, "process 10");
  next.add(RecordingNote::kToldToEnd, "");
  const std::string text = said();
  for (const char* part : {"left alone, as aon avoid lists it: aaa", "more than 256 programs",
                           "process 7 and 3 more", "told to end"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
}

TEST_F(Notes, of_many_workers_stay_bounded) {
  for (int i = 0; i < 5000; ++i) notes_.add(RecordingNote::kLeftAlone, std::to_string(i));
  RecordingNotes next(&inbox_, kept_.get());
  for (int i = 5000; i < 10'000; ++i) next.add(RecordingNote::kLeftAlone, std::to_string(i));
  next.add(RecordingNote::kToldToEnd, "");
  EXPECT_NE(said().find("7 and 4096 more"), std::string::npos);
}

}  // namespace
}  // namespace aon::agent
