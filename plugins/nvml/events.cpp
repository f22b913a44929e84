#include "nvml/events.h"

#include <algorithm>

namespace aon::nvml {
namespace {

constexpr uint32_t kMaxEvents = 16;
constexpr uint32_t kMaxErrors = 3;  ///< in a row

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
  std::string text = "Xid " + std::to_string(number);
  for (const XidWords& words : kXids) {
    if (words.number == number) return text + " (" + words.text + ")";
  }
  return text;
}

Events::~Events() {
  if (call_.free_event_set == nullptr) return;
  for (const Watch& watch : watches_) call_.free_event_set(watch.set);
}

uint32_t Events::watch_one(uint32_t index, const Gpu& gpu) {
  EventSet set = nullptr;
  if (const uint32_t code = call_.event_set(&set); code != kSuccess) return code;
  const uint32_t code = call_.register_events(gpu.handle, kEventXid, set);
  watches_.push_back({index, set, code == kSuccess});
  return code;
}

std::vector<uint32_t> Events::watch(const std::vector<Gpu>& gpus) {
  std::vector<uint32_t> codes(gpus.size(), kFunctionNotFound);
  if (call_.event_set == nullptr || call_.register_events == nullptr || call_.wait_event == nullptr)
    return codes;
  for (uint32_t i = 0; i < gpus.size(); ++i)
    codes[i] = gpus[i].instance ? uint32_t{kSuccess} : watch_one(i, gpus[i]);
  return codes;
}

bool Events::is_watching(size_t gpu) const {
  return std::any_of(watches_.begin(), watches_.end(),
                     [&](const Watch& watch) { return watch.gpu == gpu && watch.is_on; });
}

void Events::take_from(Watch* watch, std::vector<Xid>* found) {
  for (uint32_t count = 0; watch->is_on && count < kMaxEvents; ++count) {
    EventData event = {};
    const uint32_t code = call_.wait_event(watch->set, &event, 0);
    const bool is_error = code != kSuccess && code != kTimeout;
    watch->errors_in_a_row = is_error ? watch->errors_in_a_row + 1 : 0;
    if (code == kTimeout) break;
    if (is_error) {
      // A GPU that is lost makes every wait fail at once.
      const bool is_gone = code == kGpuIsLost || code == kResetRequired;
      if (!is_gone && watch->errors_in_a_row < kMaxErrors) break;
      watch->is_on = false;
      ends_.push_back({watch->gpu, code});
    } else if (event.type == kEventXid) {
      found->push_back({watch->gpu, static_cast<uint32_t>(event.data)});
    }
  }
}

std::vector<Xid> Events::take() {
  std::vector<Xid> found;
  for (Watch& watch : watches_) take_from(&watch, &found);
  return found;
}

}  // namespace aon::nvml
