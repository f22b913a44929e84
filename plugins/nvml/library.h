/// The driver's libnvidia-ml.so.1, loaded and asked by name: nothing of NVIDIA is linked.
/// Owner: the poller; never unloaded.   Thread: one.   Cost: open() some ms; init() up to seconds
/// where the driver has to wake the GPUs (no persistence mode).
#pragma once

#include <string>

#include "node/output.h"
#include "node/system.h"
#include "nvml/interface.h"

namespace aon::nvml {

constexpr const char* kLibraryName = "libnvidia-ml.so.1";

class Library {
 public:
  /// Loads `name`, a path or what the loader finds. OFF in state(): it is not there.
  explicit Library(const char* name);

  const node::StateText& state() const { return state_; }
  const Functions& call() const { return functions_; }

  /// Initializes NVML. False: state() says why not.
  bool init();
  /// "driver 580.65.06, NVML 13.580.65.06".
  const std::string& versions() const { return versions_; }
  void shutdown();

 private:
  void ask_versions();

  Functions functions_ = {};
  node::StateText state_;
  std::string versions_;
};

/// Does the PCI bus have a GPU of NVIDIA, with a driver or without?
bool has_nvidia_device(const node::System& system);

/// What went wrong, in words, and the number.
std::string code_text(uint32_t code);
/// What helps against it; "" nothing that we know.
std::string code_remedy(uint32_t code);

}  // namespace aon::nvml
