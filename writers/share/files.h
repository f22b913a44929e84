/// The files by which the processes of an assembly in shares hand things to each other
/// (writers/assemble/shares.h). A file is made under another name and renamed when it is whole, so
/// whoever sees it may read it.
///
///     header   "AON share 7 VERSION\n"; another version is refused
///     blocks   u64 byte count, u64 CRC-32C, bytes; several blocks may have one key; of items u64
///              how many, and these packed (writers/share/packed_items.h)
///     index    a block: key and offset of each
///     footer   u64 offset of the index
///
/// Thread: one.   Cost: a buffer of kBufferBytes.   Errors: kIo; kDamaged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/unique_fd.h"
#include "writers/share/packed_items.h"
#include "writers/state.h"

namespace aon::writers::share {

constexpr uint64_t kMaxBlockBytes = 1ull << 32;  ///< a longer one is damage
constexpr size_t kItemBlockBytes = 256u << 10;   ///< of a block's items, unpacked

struct IndexEntry {
  uint64_t key;
  uint64_t offset;
};

class FileWriter {
 public:
  static constexpr size_t kBufferBytes = 256u << 10;

  /// Makes PATH.new.HOST.PID; finish() gives it its name.
  static Result<FileWriter> create(const std::filesystem::path& path);

  Status add(uint64_t key, std::string_view bytes);
  Status finish();

 private:
  FileWriter(std::filesystem::path path, UniqueFd file)
      : path_(std::move(path)), file_(std::move(file)) {}
  Status put(std::string_view bytes);
  Status flush();

  std::filesystem::path path_;
  UniqueFd file_;
  std::string buffer_;
  uint64_t flushed_bytes_ = 0;
  std::vector<IndexEntry> index_;
};

class FileReader {
 public:
  static Result<FileReader> open(const std::filesystem::path& path);

  using Sink = std::function<Status(std::span<const char>)>;
  /// The blocks of `key`, in the order in which they were added.
  Status for_each(uint64_t key, const Sink& sink) const;
  /// The only block of `key`.   Errors: also kDamaged where there is none.
  Status read(uint64_t key, const Sink& sink) const;

 private:
  FileReader(std::filesystem::path path, UniqueFd file)
      : path_(std::move(path)), file_(std::move(file)) {}
  Status read_index();
  Status read_block(uint64_t offset, std::string* bytes) const;
  Error damage() const;

  std::filesystem::path path_;
  UniqueFd file_;
  uint64_t file_bytes_ = 0;
  std::vector<IndexEntry> index_;  ///< by key
};

/// Items of one key, block by block: no more than kBufferBytes of them in memory.
template <class Item>
class ItemWriter {
 public:
  explicit ItemWriter(FileWriter* file) : file_(file) {}

  Status add(uint64_t key, const Item& item) {
    if (!items_.empty() && (key != key_ || items_.size() * sizeof(Item) >= kItemBlockBytes)) {
      if (Status status = flush(); !status) return status;
    }
    key_ = key;
    items_.push_back(item);
    return {};
  }
  Status flush() {
    if (items_.empty()) return {};
    const uint64_t count = items_.size();
    bytes_.resize(sizeof count);
    std::memcpy(bytes_.data(), &count, sizeof count);
    ItemPacker<Item>::pack(items_, &bytes_);
    items_.clear();
    return file_->add(key_, {bytes_.data(), bytes_.size()});
  }

 private:
  static_assert(std::is_trivially_copyable_v<Item>);

  FileWriter* file_;
  uint64_t key_ = 0;
  std::vector<Item> items_;
  std::vector<char> bytes_;
};

/// Calls `sink` with each item of `key`.
template <class Item>
Status read_items(const FileReader& file, uint64_t key,
                  const std::function<Status(const Item&)>& sink) {
  std::vector<Item> items;
  std::vector<char> packed;
  return file.for_each(key, [&](std::span<const char> bytes) {
    uint64_t count = 0;
    const bool has_count = bytes.size() >= sizeof count;
    if (has_count) std::memcpy(&count, bytes.data(), sizeof count);
    const size_t packed_bytes = has_count ? bytes.size() - sizeof count : 0;
    if (!has_count || count > kItemBlockBytes / sizeof(Item) + 1)
      return Status(Error{Code::kDamaged, "a share of another build"});
    packed.resize(packed_bytes + kPackedSlackBytes);
    std::memcpy(packed.data(), bytes.data() + sizeof count, packed_bytes);
    items.resize(count);
    if (!ItemPacker<Item>::unpack({packed.data(), packed_bytes}, items))
      return Status(Error{Code::kDamaged, "a share of another build"});
    for (const Item& item : items) {
      if (Status status = sink(item); !status) return status;
    }
    return Status();
  });
}

}  // namespace aon::writers::share
