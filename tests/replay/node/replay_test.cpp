// Machines as text -> states and samples of every provider of plugins/node, compared with
// MACHINE.expected beside it. AON_UPDATE_FIXTURES=1 writes the text anew.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>

#include "plugins/node/energy.h"
#include "plugins/node/membw.h"
#include "plugins/node/network.h"
#include "plugins/node/node.h"
#include "plugins/node/process.h"
#include "tests/replay/node/machine.h"
#include "tests/unit/provider/fake_core.h"

extern const char* const kFixtures;  // the build writes it

namespace aon::node {
namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string number(uint32_t process) {
  return process == AON_PROCESS_NODE ? "node" : std::to_string(process);
}

void write_state(std::ostream& text, uint32_t process, const aon_core::State& state) {
  constexpr const char* kStates[] = {"off", "on", "degraded"};
  text << "  " << number(process) << " is " << kStates[state.state] << '\n';
  if (!state.reason.empty()) text << "    reason: " << state.reason << '\n';
  if (!state.remedy.empty()) text << "    remedy: " << state.remedy << '\n';
}

/// Metrics in the order of their definition, with the values of all times; of control groups with
/// what the description says, which of them it is.
std::string text_of(const aon_core& core) {
  std::ostringstream text;
  for (const auto& [process, state] : core.states) write_state(text, process, state);
  for (const aon_core::Metric& metric : core.metrics) {
    text << "  " << number(metric.process) << ' ' << metric.name << " [" << metric.unit << "]"
         << (metric.mode == AON_METRIC_ABSOLUTE ? " absolute:" : ":");
    double last = 0;
    for (const auto& sample : core.samples_of(metric.process, metric.name)) {
      text << ' ' << sample.ticks << '=' << sample.value;
      if (sample.running_ns != sample.enabled_ns) text << "(scaled)";
      const bool goes_back = metric.mode == AON_METRIC_ACCUMULATED && sample.value < last;
      EXPECT_FALSE(goes_back) << metric.name << " goes back at " << sample.ticks;
      last = sample.value;
    }
    text << '\n';
    if (metric.name.starts_with("cgroup-")) text << "    " << metric.description << '\n';
  }
  return text.str();
}

void drive(const std::string& step, Session& session, aon_core& core) {
  std::istringstream words(step);
  std::string verb;
  uint64_t first = 0;
  pid_t pid = 0;
  words >> verb >> first >> pid;
  if (verb == "start") {
    session.process_started(static_cast<uint32_t>(first), pid);
  } else if (verb == "tick") {
    core.ticks = first;
    session.tick(first);
  } else if (verb == "end") {
    session.process_ended(static_cast<uint32_t>(first));
  } else {
    ADD_FAILURE() << "unknown step: " << step;
  }
}

template <class T>
std::string run(const std::string& machine_text) {
  test::Machine machine(machine_text);
  aon_core core;
  core.ticks = 0;
  Output output(&core, &aon::test::fake_core_api());
  {
    T session(machine, output);
    const StateText state = session.start(0);
    output.set_state(AON_PROCESS_NODE, state);
    if (state.state != AON_STATE_OFF) {
      for (std::string step; !(step = machine.next()).empty();) drive(step, session, core);
    }
  }
  EXPECT_EQ(machine.open_count(), 0u) << "descriptors left open";
  return text_of(core);
}

void replay(const std::filesystem::path& path) {
  const std::string machine = read_file(path);
  const std::string text = "energy\n" + run<EnergySession>(machine) + "membw\n" +
                           run<MembwSession>(machine) + "network\n" + run<NetworkSession>(machine) +
                           "node\n" + run<NodeSession>(machine) + "process\n" +
                           run<ProcessSession>(machine);
  const std::filesystem::path expected = std::filesystem::path(path).replace_extension(".expected");
  if (getenv("AON_UPDATE_FIXTURES") != nullptr) std::ofstream(expected) << text;
  EXPECT_EQ(text, read_file(expected)) << path;
}

TEST(NodeReplay, gives_the_samples_that_were_checked_by_hand) {
  int machines = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFixtures)) {
    if (entry.path().extension() != ".machine") continue;
    ++machines;
    replay(entry.path());
  }
  EXPECT_GE(machines, 6);
}

}  // namespace
}  // namespace aon::node
