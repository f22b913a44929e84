/// What a fuzz target defines. libFuzzer drives it when AON_FUZZ is on; otherwise replay_main.cpp
/// runs the seeds, the committed corpus and random mutations of both as an ordinary test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace aon::fuzz {

using Bytes = std::vector<uint8_t>;

/// Valid inputs of this target to start from.
std::vector<Bytes> seeds();

/// A failed check is a crash: the fuzzer and the sanitizers report it.
inline void check(bool holds) {
  if (!holds) __builtin_trap();
}

/// Reads numbers off the front of an input; zeros behind its end.
class Input {
 public:
  Input(const uint8_t* data, size_t bytes) : at_(data), end_(data + bytes) {}
  template <class T>
  T take() {
    T value = 0;
    for (size_t i = 0; i < sizeof(T) && at_ != end_; ++i, ++at_) {
      value = static_cast<T>(value | static_cast<T>(*at_) << (8 * i));
    }
    return value;
  }
  Bytes take_bytes(size_t count) {
    const size_t left = static_cast<size_t>(end_ - at_);
    const size_t taken = count < left ? count : left;
    Bytes bytes(at_, at_ + taken);
    at_ += taken;
    return bytes;
  }
  bool is_empty() const { return at_ == end_; }

 private:
  const uint8_t* at_;
  const uint8_t* end_;
};

}  // namespace aon::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes);
