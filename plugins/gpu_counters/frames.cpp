#include "gpu_counters/frames.h"

#include <algorithm>
#include <cstring>

namespace aon::gpu_counters {
namespace {

bool is_valid(const FrameHead& head) {
  const auto kind = static_cast<uint16_t>(head.kind);
  return head.magic == kFrameMagic && kind >= static_cast<uint16_t>(FrameKind::kDevice) &&
         kind <= static_cast<uint16_t>(FrameKind::kRemark) && head.value_count <= kMaxValues &&
         head.text_bytes <= kMaxTextBytes &&
         (head.device < kMaxDevices || head.device == kAllDevices);
}

}  // namespace

void append_frame(FrameHead head, std::span<const double> values,
                  const std::vector<std::string>& texts, std::string* bytes) {
  std::string text;
  for (const std::string& one : texts) {
    const size_t room = kMaxTextBytes - text.size();
    if (room == 0) break;
    text += one.substr(0, room - 1);
    text += '\0';
  }
  if (values.size() > kMaxValues) values = values.first(kMaxValues);
  head.value_count = static_cast<uint32_t>(values.size());
  head.text_bytes = static_cast<uint32_t>(text.size());
  bytes->append(reinterpret_cast<const char*>(&head), sizeof head);
  bytes->append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  bytes->append(text);
}

bool FrameReader::add(const char* bytes, size_t count,
                      const std::function<void(const Frame&)>& sink) {
  if (is_broken_) return false;
  pending_.append(bytes, count);
  size_t at = 0;
  while (pending_.size() - at >= sizeof(FrameHead)) {
    Frame frame;
    std::memcpy(&frame.head, pending_.data() + at, sizeof frame.head);
    if (!is_valid(frame.head)) {
      is_broken_ = true;
      return false;
    }
    const size_t value_bytes = frame.head.value_count * sizeof(double);
    const size_t size = sizeof frame.head + value_bytes + frame.head.text_bytes;
    if (pending_.size() - at < size) break;
    const char* data = pending_.data() + at + sizeof frame.head;
    frame.values.resize(frame.head.value_count);
    if (value_bytes != 0) std::memcpy(frame.values.data(), data, value_bytes);
    const std::string text(data + value_bytes, frame.head.text_bytes);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\0', begin), text.size());
      frame.texts.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    at += size;
    sink(frame);
  }
  pending_.erase(0, at);
  return true;
}

}  // namespace aon::gpu_counters
