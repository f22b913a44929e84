/// What the helper process tells the provider, over a pipe: frames of a fixed head, values, texts.
/// Whoever reads it trusts nothing: lengths are bounded, names are looked up.
///
/// | kind     | values              | texts, each ends with NUL          | start_ns, end_ns       |
/// |----------|---------------------|------------------------------------|------------------------|
/// | kDevice  | -                   | UUID, name, chip, series "a,b,c",  | -                      |
/// |          |                     | what it lacks "d,e"                |                        |
/// | kSample  | one for each series | -                                  | of the sample          |
/// | kProblem | -                   | reason, remedy; no reason: solved  | -                      |
/// | kRemark  | -                   | reason, remedy: works all the same | -                      |
/// | kUsage   | -                   | -                                  | CPU ns, resident bytes |
/// | kLost    | -                   | -                                  | -, how often it was    |
/// |          |                     |                                    | full                   |
///
/// Thread: one for each end.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace aon::gpu_counters {

constexpr uint32_t kFrameMagic = 0x4d504e41;  ///< "ANPM"
constexpr uint32_t kMaxValues = 64;
constexpr uint32_t kMaxTextBytes = 4096;
constexpr uint16_t kMaxDevices = 64;
constexpr uint16_t kAllDevices = 0xffff;

enum class FrameKind : uint16_t { kDevice = 1, kSample, kProblem, kUsage, kLost, kRemark };

struct FrameHead {
  uint32_t magic = kFrameMagic;
  FrameKind kind = FrameKind::kUsage;
  uint16_t device = kAllDevices;
  uint32_t value_count = 0;
  uint32_t text_bytes = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
};
static_assert(sizeof(FrameHead) == 32);

struct Frame {
  FrameHead head;
  std::vector<double> values;
  std::vector<std::string> texts;
};

/// Adds a frame to `bytes`; texts that are too long are cut.
void append_frame(FrameHead head, std::span<const double> values,
                  const std::vector<std::string>& texts, std::string* bytes);

/// Makes frames of bytes as they come.
class FrameReader {
 public:
  /// False: these are no frames of ours; the rest is ignored.
  bool add(const char* bytes, size_t count, const std::function<void(const Frame&)>& sink);

 private:
  std::string pending_;
  bool is_broken_ = false;
};

}  // namespace aon::gpu_counters
