/// Items by bucket, more than fit in memory: what does not fit goes page by page into one file that
/// has no name, so nothing is left behind by a killed process.
/// Thread: one.   Cost: a copy per item, one write per page; memory at most `memory_bytes` and one
/// page per bucket.   Errors: kIo, which leaves the store unusable.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/unique_fd.h"

namespace aon::writers {

template <class Item>
class BucketStore {
  static_assert(std::is_trivially_copyable_v<Item>);

 public:
  /// The file, once needed, is made in `folder`.
  BucketStore(std::filesystem::path folder, size_t bucket_count, uint64_t memory_bytes)
      : folder_(std::move(folder)), memory_bytes_(memory_bytes), buckets_(bucket_count) {}

  size_t bucket_count() const { return buckets_.size(); }
  uint64_t item_count() const { return item_count_; }

  Status add(size_t bucket, const Item& item) {
    std::vector<Item>& tail = buckets_[bucket].tail;
    tail.push_back(item);
    ++item_count_;
    if (tail.size() % kPageItems != 0) return {};
    if (kept_bytes_ + kPageItems * sizeof(Item) <= memory_bytes_) {
      kept_bytes_ += kPageItems * sizeof(Item);
      return {};
    }
    return write_page(&buckets_[bucket]);
  }

  /// Takes all items of `bucket` out, in no order.
  Result<std::vector<Item>> take(size_t bucket) {
    Result<std::vector<Item>> items = read(bucket);
    buckets_[bucket] = {};
    return items;
  }

  /// All items of `bucket`, in no order.
  Result<std::vector<Item>> read(size_t bucket) const {
    std::vector<Item> items = buckets_[bucket].tail;
    for (const uint64_t offset : buckets_[bucket].pages) {
      const size_t old_count = items.size();
      items.resize(old_count + kPageItems);
      const ssize_t want = kPageItems * sizeof(Item);
      if (pread(file_.get(), items.data() + old_count, static_cast<size_t>(want),
                static_cast<off_t>(offset)) != want) {
        return Error{Code::kIo, "cannot read back " + folder_.string()};
      }
    }
    return items;
  }

 private:
  static constexpr size_t kPageItems = 256;

  struct Bucket {
    std::vector<Item> tail;
    std::vector<uint64_t> pages;  ///< offsets in the file
  };

  /// Writes the last full page of `bucket`.
  Status write_page(Bucket* bucket) {
    if (!file_) file_ = UniqueFd(open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (!file_) return Error{Code::kIo, "no room for matching messages in " + folder_.string()};
    const ssize_t size = kPageItems * sizeof(Item);
    const Item* page = bucket->tail.data() + bucket->tail.size() - kPageItems;
    if (pwrite(file_.get(), page, static_cast<size_t>(size), static_cast<off_t>(end_)) != size) {
      return Error{Code::kIo, "no room for matching messages in " + folder_.string()};
    }
    bucket->pages.push_back(end_);
    bucket->tail.resize(bucket->tail.size() - kPageItems);
    end_ += static_cast<uint64_t>(size);
    return {};
  }

  std::filesystem::path folder_;
  uint64_t memory_bytes_;
  uint64_t kept_bytes_ = 0;
  uint64_t item_count_ = 0;
  uint64_t end_ = 0;
  UniqueFd file_;
  std::vector<Bucket> buckets_;
};

}  // namespace aon::writers
