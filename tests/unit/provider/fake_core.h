/// A core for tests: remembers what a provider says, and answers with a clock of its own.
#pragma once

#include <aon/provider.h>
#include <aon/record.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

struct aon_core {
  struct Metric {
    uint32_t process;
    std::string name;
    std::string unit;
    aon_metric_mode mode;
    std::string description;
  };
  struct Sample {
    uint32_t process;
    std::string metric;
    uint64_t ticks;
    double value;
    uint64_t enabled_ns;
    uint64_t running_ns;
  };
  struct State {
    aon_state state;
    std::string reason;
    std::string remedy;
  };

  struct Definition {
    uint32_t process;
    uint32_t type;
    std::vector<uint8_t> payload;
  };
  struct PutRecord {
    uint32_t process;
    uint32_t stream;
    aon::RecordHead head;
  };

  uint64_t ticks = 1000;
  std::vector<Metric> metrics;
  std::vector<Sample> samples;
  std::map<uint32_t, State> states;  ///< by process, the latest
  std::vector<std::string> log;
  std::vector<Definition> definitions;
  std::vector<PutRecord> records;
  std::map<uint32_t, uint64_t> lost;  ///< by process
  uint64_t cost_ns = 0;
  std::vector<aon_stack_copy> stacks;  ///< that were unwound; their bytes are gone
  std::map<uint32_t, std::vector<aon_noted_stack>> noted_stacks;  ///< by process, to be taken
  std::map<uint32_t, uint32_t> stack_rates_hz;                    ///< by process

  /// Samples of one metric of a process.
  std::vector<Sample> samples_of(uint32_t process, const std::string& metric) const {
    std::vector<Sample> found;
    for (const Sample& sample : samples) {
      if (sample.process == process && sample.metric == metric) found.push_back(sample);
    }
    return found;
  }
};

namespace aon::test {

inline uint32_t define_metric(aon_core* core, uint32_t process, const char* name, const char* unit,
                              const char* description, aon_metric_mode mode) {
  core->metrics.push_back({process, name, unit, mode, description});
  return static_cast<uint32_t>(core->metrics.size() - 1);
}

inline void sample(aon_core* core, uint32_t process, uint32_t metric, uint64_t ticks, double value,
                   uint64_t enabled_ns, uint64_t running_ns) {
  core->samples.push_back(
      {process, core->metrics.at(metric).name, ticks, value, enabled_ns, running_ns});
}

inline const aon_core_api& fake_core_api() {
  static const aon_core_api api = {
      .abi = AON_PROVIDER_ABI,
      .size = sizeof(aon_core_api),
      .now_ticks = [](aon_core* core) { return core->ticks; },
      .define_metric = define_metric,
      .sample = sample,
      .set_state =
          [](aon_core* core, uint32_t process, aon_state state, const char* reason,
             const char* remedy) {
            core->states[process] = {state, reason, remedy};
          },
      .intern = [](aon_core*, const char*) { return uint32_t{AON_NO_ID}; },
      .reserve = [](aon_core*, uint32_t) -> void* { return nullptr; },
      .commit = [](aon_core*, void*) {},
      .log = [](aon_core* core, aon_log_level, const char* text) { core->log.emplace_back(text); },
      .send_message = [](aon_core*, uint32_t, const void*, uint32_t, const int*,
                         uint32_t) { return AON_UNAVAILABLE; },
      .define =
          [](aon_core* core, uint32_t process, uint32_t type, const void* payload,
             uint32_t payload_bytes) {
            const auto* bytes = static_cast<const uint8_t*>(payload);
            core->definitions.push_back({process, type, {bytes, bytes + payload_bytes}});
            return AON_OK;
          },
      .put_record =
          [](aon_core* core, uint32_t process, uint32_t stream, const void* record) {
            aon::RecordHead head;
            std::memcpy(&head, record, sizeof(head));
            core->records.push_back({process, stream, head});
            return AON_OK;
          },
      .add_lost = [](aon_core* core, uint32_t process, uint32_t, uint64_t count, uint64_t,
                     uint64_t) { core->lost[process] += count; },
      .add_cost = [](aon_core* core, uint64_t cost_ns) { core->cost_ns += cost_ns; },
      .unwind = [](aon_core* core, uint32_t, const aon_stack_copy* copy, uint64_t* frames,
                   uint32_t) -> uint32_t {
        core->stacks.push_back(*copy);
        frames[0] = copy->ip;
        frames[1] = 0x3001;
        return 2;
      },
      .take_stack = [](aon_core* core, uint32_t process, aon_noted_stack* stack) -> uint32_t {
        auto& noted = core->noted_stacks[process];
        if (noted.empty()) return 0;
        *stack = noted.front();
        noted.erase(noted.begin());
        return 1;
      },
      .set_stack_rate = [](aon_core* core, uint32_t process,
                           uint32_t rate_hz) { core->stack_rates_hz[process] = rate_hz; },
  };
  return api;
}

}  // namespace aon::test
