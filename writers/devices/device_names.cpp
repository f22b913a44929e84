#include "writers/devices/device_names.h"

#include <algorithm>
#include <iterator>

namespace aon::writers::devices {

std::string name_in_provider(const GlobalMetric& metric) {
  const std::string prefix = metric.provider + "::";
  return metric.name.rfind(prefix, 0) == 0 ? metric.name.substr(prefix.size()) : metric.name;
}

std::string folder_of(const std::string& name) {
  const bool has_prefix = name.rfind(kDevicePrefix, 0) == 0;
  if (!has_prefix || std::count(name.begin(), name.end(), '/') != 2) return {};
  const size_t first = name.find('/');
  const size_t second = name.rfind('/');
  if (second == first + 1 || second + 1 == name.size()) return {};
  return name.substr(0, second);
}

std::string uuid_of(const std::string& folder) {
  const size_t begin = std::string(kDevicePrefix).size();
  return folder.substr(begin, folder.find('/') - begin);
}

std::string digits_of(const std::string& uuid) {
  const size_t dash = uuid.find('-');
  std::string digits = dash == std::string::npos ? uuid : uuid.substr(dash + 1);
  digits.erase(std::remove(digits.begin(), digits.end(), '-'), digits.end());
  return digits;
}

std::string digits_of(const uint8_t (&bytes)[16]) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string digits;
  for (const uint8_t byte : bytes) {
    digits += kDigits[byte >> 4];
    digits += kDigits[byte & 15];
  }
  return digits;
}

std::string uuid_text(const spool::Device& device) {
  const auto& bytes = device.definition.uuid;
  if (std::all_of(std::begin(bytes), std::end(bytes), [](uint8_t byte) { return byte == 0; }))
    return {};
  std::string text = digits_of(bytes);
  for (const size_t place : {20, 16, 12, 8}) text.insert(place, 1, '-');
  const bool is_part = device.name.find(" MIG ") != std::string::npos;  // the driver names it so
  return (is_part ? "MIG-" : "GPU-") + text;
}

std::string uuid_text(const Group& group, uint32_t device) {
  if (group.process == nullptr) return {};
  const auto known = group.process->devices.find(device);
  return known == group.process->devices.end() ? "" : uuid_text(known->second);
}

}  // namespace aon::writers::devices
