#include "node/membw.h"

#include <cerrno>
#include <map>

#include "node/text.h"

namespace aon::node {
namespace {

constexpr double kLineBytes = 64;

/// Event files that count what goes over the memory bus, and its direction. data_reads and
/// data_writes are of client CPUs.
struct EventName {
  const char* file;
  const char* direction;
};
constexpr EventName kEventFiles[] = {
    {"cas_count_read", "read"},
    {"cas_count_write", "write"},
    {"cas_count_read_sch0", "read"},
    {"cas_count_read_sch1", "read"},
    {"cas_count_write_sch0", "write"},
    {"cas_count_write_sch1", "write"},
    {"data_reads", "read"},
    {"data_writes", "write"},
};

/// Encodings of CPUs whose PMU has no event files, or had wrong ones: Linux,
/// tools/perf/pmu-events/arch/x86. Files of Ice Lake counted a part before Linux 5.13 (wrong
/// umasks); those of Granite Rapids and Sierra Forest count one of the two
/// subchannels ("Add per-scheduler IMC CAS count events", 2026).
enum class Vendor { kIntel, kAmd };
struct KnownEvent {
  const char* terms;
  const char* direction;
};
struct KnownModels {
  Vendor vendor;
  uint64_t family;
  uint64_t first_model, last_model;
  const char* pmu;
  std::vector<KnownEvent> events;
};

const std::vector<KnownModels>& known_models() {
  // sapphirerapids, emeraldrapids: UNC_M_CAS_COUNT.RD, .WR; icelakex: the same with other codes;
  // graniterapids, sierraforest, grandridge: UNC_M_CAS_COUNT_SCH0.RD ... SCH1.WR.
  static const std::vector<KnownEvent> kSpr = {{"event=0x05,umask=0xcf", "read"},
                                               {"event=0x05,umask=0xf0", "write"}};
  static const std::vector<KnownEvent> kGnr = {{"event=0x05,umask=0xcf", "read"},
                                               {"event=0x06,umask=0xcf", "read"},
                                               {"event=0x05,umask=0xf0", "write"},
                                               {"event=0x06,umask=0xf0", "write"}};
  static const std::vector<KnownEvent> kIcx = {{"event=0x04,umask=0x0f", "read"},
                                               {"event=0x04,umask=0x30", "write"}};
  // amdzen4, amdzen5: umc_cas_cmd.rd, umc_cas_cmd.wr.
  static const std::vector<KnownEvent> kUmc = {{"event=0x0a,rdwrmask=0x1", "read"},
                                               {"event=0x0a,rdwrmask=0x2", "write"}};
  // amdzen1 to amdzen3: dram_channel_data_controller_0 to _7, requests with data (64 bytes).
  static const std::vector<KnownEvent> kDf = {
      {"event=0x007,umask=0x38", "total"}, {"event=0x047,umask=0x38", "total"},
      {"event=0x087,umask=0x38", "total"}, {"event=0x0c7,umask=0x38", "total"},
      {"event=0x107,umask=0x38", "total"}, {"event=0x147,umask=0x38", "total"},
      {"event=0x187,umask=0x38", "total"}, {"event=0x1c7,umask=0x38", "total"}};
  static const std::vector<KnownModels> kModels = {
      {Vendor::kIntel, 6, 143, 143, "uncore_imc", kSpr},
      {Vendor::kIntel, 6, 207, 207, "uncore_imc", kSpr},
      {Vendor::kIntel, 6, 173, 175, "uncore_imc", kGnr},
      {Vendor::kIntel, 6, 182, 182, "uncore_imc", kGnr},
      {Vendor::kIntel, 6, 106, 108, "uncore_imc", kIcx},
      {Vendor::kAmd, 0x19, 0x10, 0x1f, "amd_umc", kUmc},
      {Vendor::kAmd, 0x19, 0x60, 0xaf, "amd_umc", kUmc},
      {Vendor::kAmd, 0x1a, 0x00, 0xff, "amd_umc", kUmc},
      {Vendor::kAmd, 0x17, 0x00, 0xff, "amd_df", kDf},
      {Vendor::kAmd, 0x19, 0x00, 0x0f, "amd_df", kDf},
      {Vendor::kAmd, 0x19, 0x20, 0x5f, "amd_df", kDf},
  };
  return kModels;
}

struct Cpu {
  bool is_amd = false;
  bool is_intel = false;
  bool is_virtual = false;
  uint64_t family = 0;
  uint64_t model = 0;
};

Cpu cpu_of(const System& system) {
  const std::string text = system.read("/proc/cpuinfo", 4096).text;
  Cpu cpu;
  cpu.is_amd = text.find("AuthenticAMD") != std::string::npos;
  cpu.is_intel = text.find("GenuineIntel") != std::string::npos;
  cpu.is_virtual = text.find(" hypervisor") != std::string::npos;
  for (const std::string_view line : split(text, "\n")) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = trimmed(line.substr(0, colon));
    const auto value = number_in(line.substr(colon + 1));
    if (key == "cpu family") cpu.family = value.value_or(0);
    if (key == "model") cpu.model = value.value_or(0);
    if (key == "model" && cpu.family != 0) break;
  }
  return cpu;
}

const KnownModels* known_model(const Cpu& cpu) {
  for (const KnownModels& known : known_models()) {
    const bool is_vendor = known.vendor == Vendor::kAmd ? cpu.is_amd : cpu.is_intel;
    if (is_vendor && known.family == cpu.family && cpu.model >= known.first_model &&
        cpu.model <= known.last_model) {
      return &known;
    }
  }
  return nullptr;
}

/// Bytes of one count; 0: the unit is not one of bytes.
double bytes_of(const EventFile& file) {
  if (file.unit.empty()) return kLineBytes;  // kernels before 3.9 have no scale
  if (file.unit == "MiB") return file.scale * 1048576;
  if (file.unit == "Bytes") return file.scale;
  return 0;
}

}  // namespace

void MembwSession::open(const Pmu& pmu, const std::string& terms, const std::string& direction,
                        double bytes_per_count, Problems* problems) {
  const auto config = encode(system_, pmu, terms);
  if (!config) return;
  for (const int cpu : pmu.cpus) {
    SocketEvent event(system_);
    const int error_number = event.open(pmu.type, *config, cpu);
    if (error_number != 0) {
      problems->error_number = error_number;
      ++problems->refused_count;
      continue;
    }
    const int package = package_of(system_, cpu);
    channels_.push_back(
        {std::move(event), "socket-" + std::to_string(package) + "-" + direction, bytes_per_count});
  }
}

void MembwSession::open_files(const Pmu& pmu, Problems* problems) {
  for (const EventName& event : kEventFiles) {
    const auto file = event_file(system_, pmu, event.file);
    const double bytes_per_count = file ? bytes_of(*file) : 0;
    if (bytes_per_count == 0) continue;
    open(pmu, file->terms, event.direction, bytes_per_count, problems);
  }
}

MembwSession::Problems MembwSession::open_all() {
  Problems problems;
  const KnownModels* known = known_model(cpu_of(system_));
  for (const std::string prefix : {"uncore_imc", "amd_umc", "amd_df"}) {
    const bool is_known = known != nullptr && known->pmu == prefix;
    for (const std::string& name : pmu_names(system_, prefix)) {
      const auto pmu = find_pmu(system_, name);
      if (!pmu) continue;
      if (!is_known) open_files(*pmu, &problems);
      if (!is_known) continue;
      for (const KnownEvent& event : known->events) {
        open(*pmu, event.terms, event.direction, kLineBytes, &problems);
      }
    }
  }
  return problems;
}

StateText MembwSession::why_off(const Problems& problems) const {
  if (problems.error_number != 0) {
    const Refusal refusal = explain_refusal(problems.error_number, system_.paranoid_level());
    return {AON_STATE_OFF, "memory controllers: " + refusal.reason, refusal.remedy};
  }
  const Cpu cpu = cpu_of(system_);
  if (cpu.is_virtual) {
    return {AON_STATE_OFF, "no memory controllers are visible in this virtual machine",
            "run on bare metal"};
  }
  const KnownModels* known = known_model(cpu);
  if (cpu.is_amd && known != nullptr && known->pmu == std::string("amd_umc")) {
    return {AON_STATE_OFF, "this kernel has no PMU of the memory controllers (amd_umc)",
            "modprobe amd_uncore, with a kernel of 6.7 or newer"};
  }
  if (cpu.is_amd) {
    return {AON_STATE_OFF, "no PMU of the memory controllers is known for this CPU",
            "modprobe amd_uncore"};
  }
  return {AON_STATE_OFF, "no PMU of the memory controllers (uncore_imc)", "modprobe intel_uncore"};
}

StateText MembwSession::find() {
  const Problems problems = open_all();
  if (channels_.empty()) return why_off(problems);
  StateText state;
  if (problems.refused_count != 0) {
    const Refusal refusal = explain_refusal(problems.error_number, system_.paranoid_level());
    state.add(AON_STATE_DEGRADED,
              refusal.reason + " (" + std::to_string(problems.refused_count) + " of " +
                  std::to_string(problems.refused_count + channels_.size()) +
                  " counters are missing: the bytes are too few)",
              refusal.remedy);
  }
  return state;
}

void MembwSession::read() {
  struct Sum {
    double bytes = 0;
    uint64_t enabled_ns = 0;
    uint64_t running_ns = 0;
  };
  std::map<std::string, Sum> sums;
  for (Channel& channel : channels_) {
    Sum& sum = sums[channel.name];
    sum.bytes += channel.event.read() * channel.bytes_per_count;
    sum.enabled_ns += channel.event.enabled_ns();
    sum.running_ns += channel.event.running_ns();
  }
  for (const auto& [name, sum] : sums) {
    const char* what = name.ends_with("-read")    ? "read from"
                       : name.ends_with("-write") ? "written to"
                                                  : "read from or written to";
    output_.total(
        AON_PROCESS_NODE,
        {name, "By", std::string("bytes ") + what + " the memory of the socket" + kShared},
        sum.bytes, sum.enabled_ns, sum.running_ns);
  }
}

}  // namespace aon::node
