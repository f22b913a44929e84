/// What happens in the helper process: one module is opened, checked, named and told through the
/// pipe. The reply is a stream of 32-bit words in this machine's order:
///
///     kText    bytes, then the text itself      texts are numbered from 1 in the order they come
///     kFrames  position, count, then per frame: function, file, line with kInlinedBit
///     kBegin   position, low and high half of the file offset where its nameless function begins
///     kSource kRemark  text
///     kFailed  code, text                       the module cannot be read; the last word but kEnd
///     kEnd                                      everything was told
///
/// A position is an index into the sorted offsets; frames that come later replace earlier ones.
/// Thread: one.   Errors: told in the stream.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "writers/symbols/lines.h"
#include "writers/symbols/resolver.h"
#include "writers/symbols/string_pool.h"

namespace aon::symbols {

enum class Word : uint32_t { kText = 1, kFrames, kBegin, kSource, kRemark, kFailed, kEnd };
constexpr uint32_t kInlinedBit = 1u << 31;

/// Writes the stream.
class Reply {
 public:
  explicit Reply(int fd) : fd_(fd) {}

  StringPool& strings() { return strings_; }
  void frames(uint32_t position, std::span<const LineFrame> frames);
  void begin(uint32_t position, uint64_t offset);
  void text(Word word, std::string_view text);
  void failed(const Error& error);
  void end();
  /// Sends what is buffered, so that it is not lost with this process.
  void flush();

 private:
  void put(uint32_t word);
  /// Sends the texts that were numbered since the last call.
  void send_texts();

  int fd_;
  StringPool strings_;
  uint32_t sent_count_ = 0;
  std::vector<char> buffer_;
};

/// Reads `module` and tells what `offsets` (ascending, each once) are.
void read_module(const ModuleReference& module, std::span<const uint64_t> offsets,
                 const ResolverOptions& options, Reply* reply);

}  // namespace aon::symbols
