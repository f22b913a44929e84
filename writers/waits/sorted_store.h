/// Any number of items in, the same items in order out, as often as wanted. What does not fit in
/// memory goes as sorted runs, packed, into a file without a name, so nothing is left behind by a
/// killed process; readers merge the runs.
///
///     run      blocks of kBlockItems items, the last one of what is left
///     block    u32 byte count, items (writers/share/packed_items.h)
///
/// Thread: one.   Cost: a sort; memory at most `memory_bytes` and kWriteBytes, and kBufferBytes per
/// run while a reader lives.   Errors: kIo, also of a disk that is nearly full; it stays: the store
/// is empty then and refuses at once.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/base/result.h"
#include "core/base/unique_fd.h"
#include "writers/share/packed_items.h"
#include "writers/share/room.h"

namespace aon::writers {

/// `Item` has operator<.
template <class Item>
class SortedStore {
  static_assert(std::is_trivially_copyable_v<Item>);

 public:
  static constexpr size_t kBufferBytes = 32768;
  static constexpr size_t kWriteBytes = 1 << 20;

  /// The file, once needed, is made in `folder`.
  SortedStore(std::filesystem::path folder, size_t memory_bytes)
      : folder_(std::move(folder)),
        memory_items_(std::max<size_t>(memory_bytes / sizeof(Item), 1)) {}

  Status add(const Item& item) {
    if (!failure_) return failure_;
    is_sorted_ = false;
    if (items_.size() == items_.capacity()) grow();
    items_.push_back(item);
    if (items_.size() < memory_items_) return {};
    Status status = write_run();
    return status ? status : fail(std::move(status));
  }

  /// Of the items that the file has, before and after the next one was added: the file is no
  /// larger, but for a sixteenth where nothing can be packed.
  uint64_t file_bytes() const { return filed_count_ * sizeof(Item); }
  uint64_t next_file_bytes() const {
    return file_bytes() + (items_.size() + 1 < memory_items_ ? 0 : memory_items_ * sizeof(Item));
  }
  /// Of the file itself.
  uint64_t packed_bytes() const { return end_; }

  /// Items in order; adding one ends it.
  class Reader {
   public:
    Reader(Reader&&) noexcept = default;
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    /// The next item, null behind the last one; it lives until the next call.
    Result<const Item*> next() {
      if (last_ != nullptr) {
        Status status = advance(last_);
        if (!status) return status.error();
        last_ = nullptr;
      }
      if (heap_.empty()) return nullptr;
      std::pop_heap(heap_.begin(), heap_.end(), is_behind);
      last_ = heap_.back();
      heap_.pop_back();
      return last_->at;
    }

   private:
    friend class SortedStore;

    /// What is left of one run: in memory from `at` to `end`, then in the file.
    struct Run {
      const Item* at = nullptr;
      const Item* end = nullptr;
      uint64_t offset = 0;
      uint64_t left_count = 0;
      std::vector<Item> buffer;
    };
    static bool is_behind(const Run* a, const Run* b) { return *b->at < *a->at; }

    explicit Reader(const SortedStore* store) : store_(store) {}

    Status begin() {
      runs_.resize(store_->runs_.size() + 1);
      if (runs_.size() > 1) packed_.resize(Packer::max_bytes(kBlockItems) + kSlackBytes);
      runs_[0].at = store_->items_.data();
      runs_[0].end = runs_[0].at + store_->items_.size();
      for (size_t i = 0; i < store_->runs_.size(); ++i) {
        runs_[i + 1].offset = store_->runs_[i].offset;
        runs_[i + 1].left_count = store_->runs_[i].count;
        Status status = fill(&runs_[i + 1]);
        if (!status) return status;
      }
      for (Run& run : runs_) push(&run);
      return {};
    }

    void push(Run* run) {
      if (run->at == run->end) return;
      heap_.push_back(run);
      std::push_heap(heap_.begin(), heap_.end(), is_behind);
    }

    Status advance(Run* run) {
      ++run->at;
      if (run->at == run->end && run->left_count != 0) {
        Status status = fill(run);
        if (!status) return status;
      }
      push(run);
      return {};
    }

    Status fill(Run* run) {
      const size_t count = std::min<uint64_t>(run->left_count, kBlockItems);
      run->buffer.resize(count);
      uint32_t byte_count = 0;
      const bool is_whole =
          read(run->offset, &byte_count, sizeof byte_count) &&
          byte_count <= Packer::max_bytes(count) &&
          read(run->offset + sizeof byte_count, packed_.data(), byte_count) &&
          Packer::unpack({packed_.data(), byte_count}, {run->buffer.data(), count});
      if (!is_whole) return Error{Code::kIo, "cannot read back a temporary file"};
      run->offset += sizeof byte_count + byte_count;
      run->left_count -= count;
      run->at = run->buffer.data();
      run->end = run->at + count;
      return {};
    }

    bool read(uint64_t offset, void* bytes, size_t count) const {
      return pread(store_->file_.get(), bytes, count, static_cast<off_t>(offset)) ==
             static_cast<ssize_t>(count);
    }

    const SortedStore* store_;
    std::vector<char> packed_;
    std::vector<Run> runs_;
    std::vector<Run*> heap_;
    Run* last_ = nullptr;  ///< its first item was given out
  };

  Result<Reader> read() {
    if (!failure_) return failure_.error();
    sort();
    Reader reader(this);
    Status status = reader.begin();
    if (!status) return status.error();
    return reader;
  }

 private:
  using Packer = share::ItemPacker<Item>;
  static constexpr size_t kSlackBytes = share::kPackedSlackBytes;
  static constexpr size_t kBlockItems = kBufferBytes / sizeof(Item) + 1;

  struct RunPlace {
    uint64_t offset;
    uint64_t count;
  };

  /// Doubled, and soon to the limit: a copy of much would take half as much memory again.
  void grow() {
    constexpr size_t kFirstItems = 64;
    const size_t doubled = std::max(2 * items_.size(), kFirstItems);
    items_.reserve(doubled < memory_items_ / 4 ? doubled : memory_items_);
  }

  /// Not every file system has files without a name from the start.
  UniqueFd open_file() const {
    UniqueFd file(open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (file) return file;
    std::string path = (folder_ / ".waits-XXXXXX").string();
    file = UniqueFd(mkostemp(path.data(), O_CLOEXEC));
    if (file) unlink(path.c_str());
    return file;
  }

  /// Gives memory and file back: both may be what others lack.
  Status fail(Status status) {
    failure_ = std::move(status);
    std::vector<Item>().swap(items_);
    runs_.clear();
    file_ = UniqueFd();
    return failure_;
  }

  void sort() {
    if (!is_sorted_) std::sort(items_.begin(), items_.end());
    is_sorted_ = true;
  }

  Status write_run() {
    sort();
    if (!file_) file_ = open_file();
    if (!file_) return file_error(std::strerror(errno));
    runs_.push_back({end_, items_.size()});
    std::vector<char> bytes;
    for (std::span<const Item> left(items_); !left.empty();) {
      const size_t count = std::min(left.size(), kBlockItems);
      append_block(left.first(count), &bytes);
      left = left.subspan(count);
      if (!left.empty() && bytes.size() < kWriteBytes) continue;
      if (Status status = write(bytes); !status) return status;
      bytes.clear();
    }
    filed_count_ += items_.size();
    items_.clear();
    return {};
  }

  static void append_block(std::span<const Item> items, std::vector<char>* bytes) {
    const size_t head = bytes->size();
    uint32_t byte_count = 0;
    bytes->resize(head + sizeof byte_count);
    Packer::pack(items, bytes);
    byte_count = static_cast<uint32_t>(bytes->size() - head - sizeof byte_count);
    std::memcpy(bytes->data() + head, &byte_count, sizeof byte_count);
  }

  /// At the end of the file.
  Status write(const std::vector<char>& bytes) {
    if (Status room = share::check_room(file_.get(), bytes.size()); !room)
      return file_error(room.error().message);
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t written =
          pwrite(file_.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(end_));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return file_error(std::strerror(errno));
      done += static_cast<size_t>(written);
      end_ += static_cast<uint64_t>(written);
    }
    return {};
  }

  Error file_error(const std::string& reason) const {
    return Error{Code::kIo, "temporary file in " + folder_.string() + ": " + reason};
  }

  std::filesystem::path folder_;
  size_t memory_items_;
  std::vector<Item> items_;
  bool is_sorted_ = true;
  UniqueFd file_;
  uint64_t end_ = 0;
  uint64_t filed_count_ = 0;  ///< items in the file
  std::vector<RunPlace> runs_;
  Status failure_;
};

}  // namespace aon::writers
