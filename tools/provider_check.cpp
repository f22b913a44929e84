// Providers that the agent would load: each is started here for a moment and says itself what it
// can do and what helps where it cannot.
#include <aon/provider.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "core/provider/loader.h"
#include "core/provider/names.h"
#include "launcher/installation.h"
#include "tools/machine_check.h"

namespace aon::tools {
namespace {

/// As aon-run has it by default; and time for a driver that has to wake its GPUs.
constexpr const char* kConfig =
    "sampling=97\ncall-graph=fp\nworker=0\nnvml-wait-ms=10000\ngpu-counters=ask\n";

/// What a provider says of the node; `aon_core` of its table.
struct Said {
  aon_state state = AON_STATE_ON;
  std::string reason;
  std::string remedy;
  double largest = 0;  ///< of all samples
};

Said* said(aon_core* core) { return reinterpret_cast<Said*>(core); }

const aon_core_api& listening_core() {
  static constexpr aon_core_api kApi = {
      .abi = AON_PROVIDER_ABI,
      .size = sizeof(aon_core_api),
      .now_ticks = [](aon_core*) { return uint64_t{0}; },
      .define_metric = [](aon_core*, uint32_t, const char*, const char*, const char*,
                          aon_metric_mode) { return uint32_t{0}; },
      .sample = [](aon_core* core, uint32_t, uint32_t, uint64_t, double value, uint64_t,
                   uint64_t) { said(core)->largest = std::max(said(core)->largest, value); },
      .set_state =
          [](aon_core* core, uint32_t process, aon_state state, const char* reason,
             const char* remedy) {
            if (process == AON_PROCESS_NODE) *said(core) = {state, reason, remedy};
          },
      .intern = [](aon_core*, const char*) { return uint32_t{AON_NO_ID}; },
      .reserve = [](aon_core*, uint32_t) -> void* { return nullptr; },
      .commit = [](aon_core*, void*) {},
      .log = [](aon_core*, aon_log_level, const char*) {},
      .send_message = [](aon_core*, uint32_t, const void*, uint32_t, const int*,
                         uint32_t) { return AON_UNAVAILABLE; },
      .define = [](aon_core*, uint32_t, uint32_t, const void*, uint32_t) { return AON_OK; },
      .put_record = [](aon_core*, uint32_t, uint32_t, const void*) { return AON_OK; },
      .add_lost = [](aon_core*, uint32_t, uint32_t, uint64_t, uint64_t, uint64_t) {},
      .add_cost = [](aon_core*, uint64_t) {},
      .unwind = [](aon_core*, uint32_t, const aon_stack_copy*, uint64_t*,
                   uint32_t) { return uint32_t{0}; },
      .take_stack = [](aon_core*, uint32_t, aon_noted_stack*) { return uint32_t{0}; },
      .set_stack_rate = [](aon_core*, uint32_t, uint32_t) {},
  };
  return kApi;
}

/// Works, for there is to be something to count.
void compute_for(std::chrono::milliseconds duration) {
  const auto end = std::chrono::steady_clock::now() + duration;
  volatile uint64_t turns = 0;
  while (std::chrono::steady_clock::now() < end) turns = turns + 1;
}

/// RAPL's counters are there in some virtual machines, and do not count. Only readings show it: the
/// provider says so after some, the first of which a machine that counts is done with.
void read_until_it_counts(const Said& words, provider::Provider* loaded) {
  constexpr std::chrono::milliseconds kFirst{20};
  constexpr int kMostReadings = 12;
  for (int i = 0; i < kMostReadings && words.largest <= 0 && words.state != AON_STATE_OFF; ++i) {
    compute_for(i == 0 ? kFirst : std::chrono::milliseconds(loaded->tick_period_ms()));
    loaded->tick(0);
  }
}

Check check_provider(const std::string& name, const std::string& folder) {
  const std::string title = "provider " + name;
  auto loaded =
      provider::Provider::load(provider::provider_path(folder, name), AON_HOST_NODE, folder);
  if (!loaded) return {title, Ability::kNo, loaded.error().message, ""};
  Said words;
  const Status status =
      loaded->start(reinterpret_cast<aon_core*>(&words), listening_core(), kConfig);
  if (status && name == "energy") read_until_it_counts(words, &*loaded);
  loaded->stop();
  if (!status) {
    const std::string why = words.reason.empty() ? status.error().message : words.reason;
    return {title, Ability::kNo, why, words.remedy};
  }
  const std::string detail = words.reason.empty() ? loaded->description() : words.reason;
  const Ability ability = words.state == AON_STATE_ON    ? Ability::kYes
                          : words.state == AON_STATE_OFF ? Ability::kNo
                                                         : Ability::kLimited;
  return {title, ability, detail, words.remedy};
}

}  // namespace

std::vector<Check> check_providers() {
  std::vector<Check> checks;
  const Result<launcher::Installation> files = launcher::find_installation();
  if (!files) return checks;  // the line "installation" says it
  const std::string folder = provider::provider_folder(files->library_dir);
  for (const std::string& name : provider::installed_names(folder, folder)) {
    if (provider::is_wanted({}, name)) checks.push_back(check_provider(name, folder));
  }
  return checks;
}

}  // namespace aon::tools
