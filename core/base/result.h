/// Result<T> and Status: an error is a code and a message that names what failed and what to do
/// about it. The names are std::expected's, which g++ 12 lacks. Control path only; the
/// application's calls return no errors. Thread: value types.   Cost: a std::string on error.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace aon {

enum class Code { kUnavailable, kBusy, kInvalid, kNotFound, kIo, kDamaged, kBug };

struct Error {
  Code code;
  std::string message;
};

template <class T>
class [[nodiscard]] Result {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Error error) : v_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const noexcept { return v_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }
  T& value() & { return std::get<0>(v_); }
  const T& value() const& { return std::get<0>(v_); }
  T&& value() && { return std::get<0>(std::move(v_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const& { return std::get<1>(v_); }

 private:
  std::variant<T, Error> v_;
};

/// Success, or an error.
class [[nodiscard]] Status {
 public:
  Status() = default;
  // NOLINTNEXTLINE(google-explicit-constructor)
  Status(Error error) : error_(std::move(error)), ok_(false) {}

  bool has_value() const noexcept { return ok_; }
  explicit operator bool() const noexcept { return ok_; }
  const Error& error() const& { return error_; }

 private:
  Error error_{Code::kBug, ""};
  bool ok_ = true;
};

}  // namespace aon
