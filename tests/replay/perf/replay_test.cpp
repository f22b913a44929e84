// Transcripts of machines -> states and samples as text, compared with MACHINE.expected beside it.
// AON_UPDATE_FIXTURES=1 writes the text anew.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iomanip>
#include <sstream>

#include "plugins/perf/session.h"
#include "tests/replay/perf/transcript.h"
#include "tests/unit/provider/fake_core.h"

extern const char* const kFixtures;  // the build writes it

namespace aon::perf {
namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string text_of(const aon_core& core) {
  constexpr const char* kStates[] = {"off", "on", "degraded"};
  std::ostringstream text;
  for (const auto& [process, state] : core.states) {
    text << "process " << process << " is " << kStates[state.state] << '\n';
    if (!state.reason.empty()) text << "  reason: " << state.reason << '\n';
    if (!state.remedy.empty()) text << "  remedy: " << state.remedy << '\n';
  }
  for (const auto& s : core.samples) {
    text << s.ticks << ' ' << s.process << ' ' << s.metric << ' ' << std::fixed
         << std::setprecision(1) << s.value << ' ' << s.enabled_ns << ' ' << s.running_ns << '\n';
  }
  return text.str();
}

void drive(const std::string& what, Session& session, aon_core& core) {
  std::istringstream words(what);
  std::string verb;
  uint64_t number = 0;
  pid_t pid = 0;
  words >> verb >> number >> pid;
  if (verb == "start") {
    session.process_started(static_cast<uint32_t>(number), pid);
  } else if (verb == "tick") {
    core.ticks = number;
    session.tick(number);
  } else if (verb == "end") {
    session.process_ended(static_cast<uint32_t>(number));
  } else {
    ADD_FAILURE() << "unknown drive: " << what;
  }
}

void replay(const std::filesystem::path& transcript) {
  test::Replay machine(read_file(transcript));
  aon_core core;
  {
    const Kernel& kernel = test::replay_kernel(machine);
    Session session(&core, &aon::test::fake_core_api(), kernel, probe_all(kernel), 0);
    for (const std::string& what : machine.drives) drive(what, session, core);
  }
  EXPECT_EQ(machine.missing, std::vector<std::string>{}) << transcript;
  EXPECT_TRUE(machine.open_descriptors.empty()) << transcript << ": descriptors left open";
  const std::string text = text_of(core);
  const std::filesystem::path expected =
      std::filesystem::path(transcript).replace_extension(".expected");
  if (getenv("AON_UPDATE_FIXTURES") != nullptr) std::ofstream(expected) << text;
  EXPECT_EQ(text, read_file(expected)) << transcript;
}

TEST(PerfReplay, gives_the_samples_that_were_checked_by_hand) {
  int machines = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFixtures)) {
    if (entry.path().extension() != ".transcript") continue;
    ++machines;
    replay(entry.path());
  }
  EXPECT_GE(machines, 4);
}

}  // namespace
}  // namespace aon::perf
