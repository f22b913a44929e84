/// What one process of an assembly hands over to another of the same build: values, one after the
/// other, read back in the same order. A class names its fields once, for both ways:
///
///     Status Table::save(StateOut* out) { out->put(rows_); rows_.clear(); return {}; }
///     Status Table::load(StateIn* in)   { in->append(&rows_); return in->status(); }
///
/// Values are trivially copyable ones, strings, and optionals, pairs, vectors and maps of values.
/// There is no format beside the code: both ends are one build (writers/share/files.h checks it)
/// on machines of one byte order, and the bytes carry a checksum there.
/// Thread: one.   Cost: a copy.   Errors: bytes that end too soon, or say what cannot be (check()):
/// all later reads fail too.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/result.h"

namespace aon::writers {

class StateOut {
 public:
  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
    put_bytes(&value, sizeof(value));
  }
  void put(const std::string& text) {
    put(uint64_t{text.size()});
    put_bytes(text.data(), text.size());
  }
  template <class T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  template <class A, class B>
  void put(const std::pair<A, B>& value) {
    put(value.first);
    put(value.second);
  }
  template <class T>
  void put(std::span<const T> values) {
    put(uint64_t{values.size()});
    if constexpr (std::is_trivially_copyable_v<T>) {
      put_bytes(values.data(), values.size_bytes());
    } else {
      for (const T& value : values) put(value);
    }
  }
  template <class T>
  void put(const std::vector<T>& values) {
    if constexpr (std::is_same_v<T, bool>) {
      put(uint64_t{values.size()});
      for (const bool value : values) put(value);
    } else {
      put(std::span<const T>(values));
    }
  }
  template <class K, class V>
  void put(const std::map<K, V>& values) {
    put_map(values);
  }
  template <class K, class V>
  void put(const std::unordered_map<K, V>& values) {
    put_map(values);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  template <class Map>
  void put_map(const Map& values) {
    put(uint64_t{values.size()});
    for (const auto& [key, value] : values) {
      put(key);
      put(value);
    }
  }
  void put_bytes(const void* from, size_t byte_count) {
    if (byte_count != 0) bytes_.append(static_cast<const char*>(from), byte_count);
  }

  std::string bytes_;
};

/// What load() returns for an id that would lead outside of the model's or its own tables.
inline Error unknown_id(const char* of_what) {
  return {Code::kDamaged, std::string("a share's state has an unknown ") + of_what};
}

/// Each get() is false, and leaves its target alone or half filled, once the bytes have ended.
class StateIn {
 public:
  /// `bytes` outlive it.
  explicit StateIn(std::span<const char> bytes) : left_(bytes) {}

  template <class T>
  bool get(T* value) {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
    return get_bytes(value, sizeof(*value));
  }
  bool get(bool* value) {
    uint8_t byte = 0;
    if (!get(&byte)) return false;
    *value = byte != 0;
    return true;
  }
  bool get(std::string* text) {
    uint64_t byte_count = 0;
    if (!get_count(&byte_count, 1)) return false;
    text->assign(left_.data(), byte_count);
    left_ = left_.subspan(byte_count);
    return true;
  }
  template <class T>
  bool get(std::optional<T>* value) {
    bool has_value = false;
    if (!get(&has_value)) return false;
    value->reset();
    return !has_value || get(&value->emplace());
  }
  template <class A, class B>
  bool get(std::pair<A, B>* value) {
    return get(&value->first) && get(&value->second);
  }
  template <class T>
  bool get(std::vector<T>* values) {
    values->clear();
    return append(values);
  }
  template <class K, class V>
  bool get(std::map<K, V>* values) {
    return get_map(values);
  }
  template <class K, class V>
  bool get(std::unordered_map<K, V>* values) {
    return get_map(values);
  }

  /// Puts a vector behind what is in `values`.
  template <class T>
  bool append(std::vector<T>* values) {
    constexpr bool kIsPlain = std::is_trivially_copyable_v<T> && !std::is_same_v<T, bool>;
    uint64_t count = 0;
    if (!get_count(&count, kIsPlain ? sizeof(T) : 1)) return false;
    const size_t before = values->size();
    values->resize(before + count);
    if constexpr (kIsPlain) {
      return get_bytes(values->data() + before, count * sizeof(T));
    } else {
      for (size_t i = before; i < values->size(); ++i) {
        if constexpr (std::is_same_v<T, bool>) {
          bool value = false;
          if (!get(&value)) return false;
          (*values)[i] = value;
        } else {
          if (!get(&(*values)[i])) return false;
        }
      }
      return true;
    }
  }

  /// Gives each value of a vector to `use`, up to the first one for which that is false.
  template <class T, class Use>
  bool each(Use use) {
    uint64_t count = 0;
    T value{};
    if (!get_count(&count, std::is_trivially_copyable_v<T> ? sizeof(T) : 1)) return false;
    for (uint64_t i = 0; i < count; ++i) {
      if (!get(&value) || !use(value)) return false;
    }
    return true;
  }

  /// Of what was read, say of an index: where it is not so all later reads fail.
  bool check(bool is_possible) {
    is_good_ = is_good_ && is_possible;
    return is_good_;
  }

  bool is_at_end() const { return is_good_ && left_.empty(); }
  /// Success unless a read or a check has failed.
  Status status() const {
    if (is_good_) return {};
    return Error{Code::kDamaged, "a share's state is damaged or ends too soon"};
  }

 private:
  template <class Map>
  bool get_map(Map* values) {
    uint64_t count = 0;
    if (!get_count(&count, 1)) return false;
    values->clear();
    for (uint64_t i = 0; i < count; ++i) {
      typename Map::key_type key{};
      if (!get(&key) || !get(&(*values)[std::move(key)])) return false;
    }
    return true;
  }
  /// A number of items of at least `least_bytes` each.
  bool get_count(uint64_t* count, size_t least_bytes) {
    if (!get_bytes(count, sizeof(*count))) return false;
    is_good_ = *count <= left_.size() / least_bytes;
    return is_good_;
  }
  bool get_bytes(void* to, size_t byte_count) {
    is_good_ = is_good_ && byte_count <= left_.size();
    if (!is_good_) return false;
    if (byte_count != 0) std::memcpy(to, left_.data(), byte_count);
    left_ = left_.subspan(byte_count);
    return true;
  }

  std::span<const char> left_;
  bool is_good_ = true;
};

}  // namespace aon::writers
