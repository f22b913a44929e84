#include "writers/symbols/resolver.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "writers/symbols/helper.h"
#include "writers/symbols/module_reader.h"

namespace aon::symbols {

namespace {

/// Added to a module's time when its files may have to come over the network.
constexpr uint32_t kDownloadSeconds = 300;
/// What this process keeps of an answer is at most this many times as large as the stream.
constexpr uint64_t kGrowth = 4;

/// Frames of one offset, a range of Answer::frames.
struct FrameRange {
  uint64_t first = 0;
  uint32_t count = 0;
};

/// What came through the pipe.
struct Answer {
  std::vector<Frame> frames;
  std::vector<FrameRange> ranges;  ///< by position
  std::string_view source;
  std::string remark;
  std::optional<Error> error;
  bool is_complete = false;
};

/// Takes the stream of module_reader.h apart. The other end may have gone mad: everything is
/// checked, and at the first wrong word reading ends.
class ReplyReader {
 public:
  ReplyReader(Helper* helper, StringPool* strings, uint64_t limit_bytes, Answer* answer)
      : helper_(helper), strings_(strings), left_bytes_(limit_bytes), answer_(answer) {}

  /// False when the stream is cut off or wrong.
  bool read() {
    uint32_t word = 0;
    while (take(&word)) {
      if (word == static_cast<uint32_t>(Word::kEnd)) return answer_->is_complete = true;
      if (!read_part(static_cast<Word>(word))) return false;
    }
    return false;
  }

 private:
  bool take(void* to, size_t bytes) {
    if (bytes > left_bytes_) return false;
    left_bytes_ -= bytes;
    for (size_t done = 0; done < bytes;) {
      if (at_ == end_) {
        at_ = 0;
        end_ = helper_->read(buffer_.data(), buffer_.size());
        if (end_ == 0) return false;
      }
      const size_t part = std::min(bytes - done, end_ - at_);
      std::memcpy(static_cast<char*>(to) + done, buffer_.data() + at_, part);
      done += part;
      at_ += part;
    }
    return true;
  }
  bool take(uint32_t* word) { return take(word, sizeof(*word)); }

  /// A text by the number that the helper gave it.
  bool take_text(std::string_view* text) {
    uint32_t number = 0;
    if (!take(&number) || number > texts_.size()) return false;
    *text = number == 0 ? std::string_view() : texts_[number - 1];
    return true;
  }

  bool read_part(Word word) {
    std::string_view text;
    uint32_t code = 0;
    switch (word) {
      case Word::kText:
        return read_text();
      case Word::kFrames:
        return read_frames();
      case Word::kBegin:
        return read_begin();
      case Word::kSource:
        return take_text(&answer_->source);
      case Word::kRemark:
        if (!take_text(&text)) return false;
        answer_->remark = text;
        return true;
      case Word::kFailed:
        if (!take(&code) || !take_text(&text) || code > static_cast<uint32_t>(Code::kBug))
          return false;
        answer_->error = Error{static_cast<Code>(code), std::string(text)};
        return true;
      default:
        return false;
    }
  }

  bool read_text() {
    uint32_t bytes = 0;
    if (!take(&bytes) || bytes > left_bytes_) return false;
    std::string text(bytes, 0);
    if (!take(text.data(), bytes)) return false;
    texts_.push_back(strings_->text(strings_->number(text)));
    return true;
  }

  bool read_frames() {
    uint32_t position = 0, count = 0;
    if (!take(&position) || !take(&count) || position >= answer_->ranges.size()) return false;
    answer_->ranges[position] = {answer_->frames.size(), 0};
    for (; count > 0; --count) {
      Frame frame;
      if (!take_text(&frame.function) || !take_text(&frame.file) || !take(&frame.line))
        return false;
      frame.is_inlined = (frame.line & kInlinedBit) != 0;
      frame.line &= ~kInlinedBit;
      answer_->frames.push_back(frame);
      ++answer_->ranges[position].count;
    }
    return true;
  }

  bool read_begin() {
    uint32_t position = 0, low = 0, high = 0;
    if (!take(&position) || !take(&low) || !take(&high) || position >= answer_->ranges.size())
      return false;
    answer_->ranges[position] = {answer_->frames.size(), 1};
    answer_->frames.emplace_back().begin_offset = uint64_t{high} << 32 | low;
    return true;
  }

  Helper* helper_;
  StringPool* strings_;
  uint64_t left_bytes_;
  Answer* answer_;
  std::vector<std::string_view> texts_;
  std::vector<char> buffer_ = std::vector<char>(1 << 16);
  size_t at_ = 0;
  size_t end_ = 0;
};

/// The offsets ascending, each once, and where each of the given ones is among them. Kept, because
/// to search them again for a million costs more than all the rest.
struct SortedOffsets {
  std::vector<uint64_t> offsets;
  std::vector<uint32_t> positions;
};

SortedOffsets sort_offsets(std::span<const uint64_t> given) {
  std::vector<std::pair<uint64_t, uint32_t>> pairs(given.size());
  for (uint32_t i = 0; i < given.size(); ++i) pairs[i] = {given[i], i};
  std::sort(pairs.begin(), pairs.end());
  SortedOffsets sorted;
  sorted.positions.resize(given.size());
  for (const auto& [offset, index] : pairs) {
    if (sorted.offsets.empty() || sorted.offsets.back() != offset) sorted.offsets.push_back(offset);
    sorted.positions[index] = static_cast<uint32_t>(sorted.offsets.size() - 1);
  }
  return sorted;
}

/// Why a module has less than it could have: the helper's own words, or how it ended.
void note_end(const ModuleReference& module, const std::string& end, Answer* answer) {
  if (answer->is_complete) return;
  const std::string why = module.path + ": the reader " + (end.empty() ? "was cut off" : end);
  const bool has_names = !answer->frames.empty();
  if (has_names) answer->remark = "lines are incomplete: " + why;
  if (!has_names && !answer->error) answer->error = Error{Code::kDamaged, why};
}

}  // namespace

Resolver::Resolver(ResolverOptions options) : options_(std::move(options)) {}

Result<ModuleReport> Resolver::resolve(const ModuleReference& module,
                                       std::span<const uint64_t> file_offsets,
                                       const FrameSink& sink) {
  if (file_offsets.size() >= ~uint32_t{0})
    return Error{Code::kInvalid, module.path + ": more than 2^32 addresses at once"};
  const SortedOffsets sorted = sort_offsets(file_offsets);
  const HelperLimits limits{
      options_.memory_bytes,
      options_.module_seconds + (options_.search.allows_debuginfod ? kDownloadSeconds : 0)};
  Result<Helper> helper = Helper::start(limits, [&](int pipe) {
    Reply reply(pipe);
    read_module(module, sorted.offsets, options_, &reply);
  });
  if (!helper) return helper.error();
  Answer answer;
  answer.ranges.resize(sorted.offsets.size());
  const bool is_whole =
      ReplyReader(&*helper, &strings_, options_.memory_bytes / kGrowth, &answer).read();
  note_end(module, is_whole ? std::string() : helper->end(), &answer);
  if (answer.error) return *answer.error;
  ModuleReport report;
  report.source = answer.source;
  report.remark = answer.remark;
  for (size_t i = 0; i < file_offsets.size(); ++i) {
    const FrameRange range = answer.ranges[sorted.positions[i]];
    const std::span<const Frame> frames{answer.frames.data() + range.first, range.count};
    ++(frames.empty() || frames.back().function.empty() ? report.unnamed_count
                                                        : report.named_count);
    if (!frames.empty() && frames.front().line != 0) ++report.line_count;
    sink(i, frames);
  }
  return report;
}

}  // namespace aon::symbols
