#include "gpu_counters/visible.h"

#include <algorithm>
#include <fstream>

namespace aon::gpu_counters {
namespace {

constexpr const char* kVariable = "CUDA_VISIBLE_DEVICES=";
constexpr size_t kMaxVariables = 1u << 16;

}  // namespace

void VisibleDevices::add_process(int32_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
  if (!file) return;
  const std::string name = kVariable;
  std::string variable;
  for (size_t count = 0; count < kMaxVariables && std::getline(file, variable, '\0'); ++count) {
    if (variable.compare(0, name.size(), name) != 0) continue;
    add(variable.c_str() + name.size());
    return;
  }
  add(nullptr);
}

void VisibleDevices::add(const char* value) {
  is_known_ = true;
  if (value == nullptr) {
    has_all_ = true;
    return;
  }
  const std::string list = value;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    if (end > begin && names_.size() < kMaxNames) names_.insert(list.substr(begin, end - begin));
    has_all_ |= names_.size() == kMaxNames;  // who knows
    begin = end + 1;
  }
}

bool VisibleDevices::is_hidden(uint32_t ordinal, const std::string& uuid) const {
  if (!is_known_ || has_all_ || names_.count(std::to_string(ordinal)) != 0) return false;
  return std::none_of(names_.begin(), names_.end(),
                      [&](const std::string& name) { return uuid.rfind(name, 0) == 0; });
}

}  // namespace aon::gpu_counters
