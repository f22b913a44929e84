/// StringPool: each text once, under a number and at an address that stay for the pool's life.
/// Thread: one owner.   Cost: one hash lookup.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace aon::symbols {

class StringPool {
 public:
  /// Number of `text`; 0 is the empty text.
  uint32_t number(std::string_view text) {
    if (text.empty()) return 0;
    const auto found = numbers_.find(text);
    if (found != numbers_.end()) return found->second;
    texts_.emplace_back(text);
    const auto made = static_cast<uint32_t>(texts_.size());
    numbers_.emplace(texts_.back(), made);
    return made;
  }
  std::string_view text(uint32_t number) const {
    return number == 0 ? std::string_view() : std::string_view(texts_[number - 1]);
  }
  uint32_t count() const { return static_cast<uint32_t>(texts_.size()); }

 private:
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, uint32_t> numbers_;
};

}  // namespace aon::symbols
