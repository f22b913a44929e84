#include "nvml/library.h"

#include <dlfcn.h>

namespace aon::nvml {
namespace {

constexpr const char* kInstallDriver =
    "install NVIDIA's driver, which has the library; in a container: NVIDIA_DRIVER_CAPABILITIES="
    "utility,compute and, with docker, --gpus all";

struct CodeWords {
  uint32_t code;
  const char* text;
  const char* remedy;
};
constexpr CodeWords kCodes[] = {
    {kInvalidArgument, "invalid argument", ""},
    {kNotSupported, "not supported", ""},
    {kNoPermission, "no permission",
     "make /dev/nvidia* accessible to the job's user (Slurm: --gres=gpu)"},
    {kNotFound, "not found", ""},
    {kDriverNotLoaded, "NVIDIA's driver is not loaded", "modprobe nvidia"},
    {kTimeout, "timeout", ""},
    {kFunctionNotFound, "not in this version", "a newer driver of NVIDIA"},
    {kGpuIsLost, "the GPU is lost", "dmesg | grep Xid; then nvidia-smi --gpu-reset, or reboot"},
    {kResetRequired, "the GPU needs a reset", "nvidia-smi --gpu-reset"},
    {kVersionMismatch, "library and driver are of different versions",
     "modprobe -r nvidia && modprobe nvidia, or reboot, after an update of the driver"},
    {kInUse, "in use", ""},
    {kNoData, "no data", ""},
    {kUnknown, "unknown error", "dmesg | grep NVRM"},
};

const CodeWords* find(uint32_t code) {
  for (const CodeWords& words : kCodes) {
    if (words.code == code) return &words;
  }
  return nullptr;
}

}  // namespace

std::string code_text(uint32_t code) {
  const CodeWords* words = find(code);
  return std::string(words == nullptr ? "" : words->text) + (words == nullptr ? "" : ", ") +
         "NVML error " + std::to_string(code);
}

std::string code_remedy(uint32_t code) {
  const CodeWords* words = find(code);
  return words == nullptr ? "" : words->remedy;
}

bool has_nvidia_device(const node::System& system) {
  const std::string folder = "/sys/bus/pci/devices";
  for (const std::string& device : system.list(folder)) {
    const std::string path = folder + "/" + device;
    const bool is_nvidia = system.read(path + "/vendor").text.starts_with("0x10de");
    // Display controllers and accelerators: NVIDIA makes bridges and sound as well.
    if (is_nvidia && system.read(path + "/class").text.starts_with("0x03")) return true;
  }
  return false;
}

Library::Library(const char* name) {
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const bool has_device = has_nvidia_device(node::real_system());
    state_.add(AON_STATE_OFF,
               std::string(kLibraryName) + " is not there" +
                   (has_device ? "" : ", and no GPU of NVIDIA in this node"),
               has_device ? kInstallDriver : "");
    return;
  }
  std::string missing;
#define AON_NVML_FIND(member_, symbol_, arguments_) \
  functions_.member_ = reinterpret_cast<uint32_t(*) arguments_>(dlsym(library, #symbol_));
  AON_NVML_NEEDED(AON_NVML_FIND)
  AON_NVML_OPTIONAL(AON_NVML_FIND)
#undef AON_NVML_FIND
#define AON_NVML_CHECK(member_, symbol_, arguments_) \
  if (functions_.member_ == nullptr && missing.empty()) missing = #symbol_;
  AON_NVML_NEEDED(AON_NVML_CHECK)
#undef AON_NVML_CHECK
  if (missing.empty()) return;
  state_.add(AON_STATE_OFF, std::string(kLibraryName) + " has no " + missing,
             "a driver of NVIDIA from R450 on");
}

bool Library::init() {
  if (state_.state == AON_STATE_OFF) return false;
  const uint32_t code = functions_.init();
  if (code == kSuccess) {
    ask_versions();
    return true;
  }
  std::string remedy = code_remedy(code);
  // A stub, or a library that has no driver below it.
  if (remedy.empty()) remedy = "nvidia-smi says more";
  state_.add(AON_STATE_OFF, "nvmlInit: " + code_text(code), remedy);
  return false;
}

void Library::ask_versions() {
  char text[kVersionBytes] = {};
  const auto ask = [&](uint32_t (*function)(char*, uint32_t), const char* what) {
    if (function == nullptr || function(text, sizeof text) != kSuccess) return;
    text[sizeof text - 1] = '\0';
    versions_ += (versions_.empty() ? "" : ", ") + std::string(what) + " " + text;
  };
  ask(functions_.driver_version, "driver");
  ask(functions_.nvml_version, "NVML");
}

void Library::shutdown() { functions_.shutdown(); }

}  // namespace aon::nvml
