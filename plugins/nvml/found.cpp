#include "nvml/found.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "nvml/gpm.h"

namespace aon::nvml {
namespace {

constexpr const char* kAskForGpus =
    "ask for GPUs (Slurm: --gres=gpu:N; docker: --gpus all), nvidia-smi -L lists them";

/// "00000000:17:00.0" -> "0000:17:00.0", lower case.
std::string pci_address(const PciInfo& pci) {
  char text[32];
  snprintf(text, sizeof text, "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
  return text;
}

std::string text_of(uint32_t (*ask)(Handle, char*, uint32_t), Handle handle) {
  char text[kUuidBytes] = {};
  if (ask(handle, text, sizeof text) != kSuccess) return {};
  text[sizeof text - 1] = '\0';
  return text;
}

void add_parts(const Functions& call, const Gpu& whole, std::vector<Gpu>* gpus) {
  if (call.mig_device_count == nullptr || call.mig_device == nullptr ||
      call.gpu_instance == nullptr)
    return;
  uint32_t count = 0;
  if (call.mig_device_count(whole.handle, &count) != kSuccess) return;
  for (uint32_t i = 0; i < count; ++i) {
    Gpu part = whole;
    uint32_t instance = 0;
    if (call.mig_device(whole.handle, i, &part.handle) != kSuccess) continue;
    if (call.gpu_instance(part.handle, &instance) != kSuccess) continue;
    part.instance = instance;
    part.uuid = text_of(call.uuid, part.handle);
    if (const std::string name = text_of(call.name, part.handle); !name.empty()) part.name = name;
    part.has_gpm = call.gpm_mig_sample != nullptr && has_gpm(call, whole.handle);
    if (!part.uuid.empty()) gpus->push_back(std::move(part));
  }
}

/// False: it has no UUID, and so no series.
bool add_gpu(const Functions& call, Handle handle, std::vector<Gpu>* gpus) {
  Gpu gpu;
  gpu.handle = gpu.whole = handle;
  gpu.uuid = text_of(call.uuid, handle);
  gpu.name = text_of(call.name, handle);
  PciInfo pci = {};
  if (call.pci_info(handle, &pci) == kSuccess) gpu.address = pci_address(pci);
  if (gpu.uuid.empty()) return false;
  uint32_t mode = 0;
  uint32_t pending = 0;
  const bool has_parts = call.mig_mode != nullptr &&
                         call.mig_mode(handle, &mode, &pending) == kSuccess && mode == kMigEnabled;
  // Where it is divided, only its parts have GPM.
  gpu.has_gpm = !has_parts && has_gpm(call, handle);
  gpus->push_back(gpu);
  if (has_parts) add_parts(call, gpu, gpus);
  return true;
}

/// "2 x NVIDIA H100 80GB HBM3 (GPM)".
std::string listed(const std::vector<Gpu>& gpus) {
  std::map<std::string, uint32_t> counts;
  for (const Gpu& gpu : gpus) ++counts[gpu.name + (gpu.has_gpm ? " (GPM)" : "")];
  std::string text;
  for (const auto& [name, count] : counts) {
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " x " + name;
  }
  return text;
}

}  // namespace

std::vector<Gpu> find_gpus(const Library& library, node::StateText* state) {
  const Functions& call = library.call();
  std::vector<Gpu> gpus;
  uint32_t count = 0;
  uint32_t hidden_count = 0;
  uint32_t nameless_count = 0;
  uint32_t broken_count = 0;
  uint32_t broken_code = kSuccess;
  uint32_t last_code = call.device_count(&count);
  for (uint32_t i = 0; i < count; ++i) {
    Handle handle = nullptr;
    if (const uint32_t code = call.device(i, &handle); code != kSuccess) {
      // What a control group keeps from the job is not the job's.
      (code == kNoPermission ? hidden_count : broken_count) += 1;
      last_code = code;
      if (code != kNoPermission) broken_code = code;
      continue;
    }
    if (!add_gpu(call, handle, &gpus)) ++nameless_count;
  }
  if (gpus.empty()) {
    std::string why = library.versions() + ": no GPU is visible to this job";
    if (nameless_count != 0) why += ", the driver tells no UUID";
    if (last_code != kSuccess) why += " (" + code_text(last_code) + ")";
    state->add(AON_STATE_OFF, why, kAskForGpus);
    return gpus;
  }
  state->add(AON_STATE_ON, library.versions() + ": " + listed(gpus), "");
  if (nameless_count != 0)
    state->add(
        AON_STATE_DEGRADED,
        std::to_string(nameless_count) + " more are not read: the driver tells no UUID of them",
        "nvidia-smi -L");
  if (hidden_count != 0)
    state->add(AON_STATE_ON, std::to_string(hidden_count) + " more are not this job's", "");
  if (broken_count != 0)
    state->add(AON_STATE_DEGRADED,
               std::to_string(broken_count) + " more cannot be reached: " + code_text(broken_code),
               code_remedy(broken_code));
  return gpus;
}

bool parse_uuid(const std::string& text, uint8_t (&bytes)[16]) {
  const size_t dash = text.find('-');
  if (dash == std::string::npos) return false;
  std::string digits = text.substr(dash + 1);
  digits.erase(std::remove(digits.begin(), digits.end(), '-'), digits.end());
  if (digits.size() != 2 * sizeof bytes) return false;
  for (size_t i = 0; i < digits.size(); ++i) {
    const auto c = static_cast<unsigned char>(digits[i]);
    if (isxdigit(c) == 0) return false;
    const auto value = static_cast<uint8_t>(isdigit(c) != 0 ? c - '0' : (tolower(c) - 'a') + 10);
    bytes[i / 2] = static_cast<uint8_t>(i % 2 == 0 ? value << 4 : bytes[i / 2] | value);
  }
  return true;
}

}  // namespace aon::nvml
