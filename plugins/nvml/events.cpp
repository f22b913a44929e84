#include "nvml/events.h"

#include <algorithm>

namespace aon::nvml {
namespace {

constexpr uint32_t kMaxEvents = 16;

/// NVIDIA's catalogue (docs.nvidia.com/deploy/xid-errors) has them all.
struct XidWords {
  uint32_t number;
  const char* text;
};
constexpr XidWords kXids[] = {
    {13, "an error in a kernel, such as a bad address"},
    {31, "a page fault of the GPU: a bad address in a kernel"},
    {43, "a kernel was stopped after an error"},
    {45, "work was cleaned up after an earlier error"},
    {48, "a memory error that ECC could not correct"},
    {63, "a row of memory is to be replaced"},
    {64, "a row of memory could not be replaced"},
    {74, "an error of NVLink"},
    {79, "the GPU has fallen off the bus"},
    {92, "many corrected memory errors"},
    {94, "an uncorrected memory error, of this program alone"},
    {95, "an uncorrected memory error, of all programs"},
    {119, "the GPU's system processor does not answer"},
    {120, "an error of the GPU's system processor"},
};

}  // namespace

std::string xid_text(uint32_t number) {
  const std::string text = "Xid " + std::to_string(number);
  for (const XidWords& words : kXids) {
    if (words.number == number) return text + " (" + words.text + ")";
  }
  return text;
}

Events::~Events() {
  if (set_ != nullptr && call_.free_event_set != nullptr) call_.free_event_set(set_);
}

std::vector<uint32_t> Events::watch(const std::vector<Gpu>& gpus) {
  std::vector<uint32_t> codes(gpus.size(), kFunctionNotFound);
  is_watched_.assign(gpus.size(), false);
  if (call_.event_set == nullptr || call_.register_events == nullptr || call_.wait_event == nullptr)
    return codes;
  const uint32_t code = call_.event_set(&set_);
  codes.assign(gpus.size(), code);
  if (code != kSuccess) return codes;
  for (size_t i = 0; i < gpus.size(); ++i) {
    handles_.push_back(gpus[i].handle);
    if (gpus[i].instance) continue;  // the whole one tells
    codes[i] = call_.register_events(gpus[i].handle, kEventXid, set_);
    is_watched_[i] = codes[i] == kSuccess;
    is_watching_ |= is_watched_[i];
  }
  return codes;
}

std::vector<Xid> Events::take() {
  std::vector<Xid> found;
  while (is_watching_ && found.size() < kMaxEvents) {
    EventData event = {};
    const uint32_t code = call_.wait_event(set_, &event, 0);
    if (code == kTimeout) break;
    if (code != kSuccess) {
      // A GPU that is lost makes every wait fail at once.
      is_watching_ = false;
      end_code_ = code;
      break;
    }
    const auto at = std::find(handles_.begin(), handles_.end(), event.device);
    if (event.type != kEventXid || at == handles_.end()) continue;
    found.push_back(
        {static_cast<uint32_t>(at - handles_.begin()), static_cast<uint32_t>(event.data)});
  }
  return found;
}

}  // namespace aon::nvml
