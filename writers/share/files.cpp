#include "writers/share/files.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/base/file.h"
#include "core/base/lease.h"
#include "core/base/owner.h"
#include "core/spool/crc32c.h"

namespace aon::writers::share {
namespace {

constexpr std::string_view kHeader = "AON share 7 " AON_VERSION "\n";

struct BlockHead {
  uint64_t byte_count;
  uint64_t crc;
};

std::string_view bytes_of(const BlockHead& head) {
  return {reinterpret_cast<const char*>(&head), sizeof(head)};
}

/// Of this process alone: another one may make the same file.
std::filesystem::path unfinished(std::filesystem::path path) {
  return path += ".new." + local_host_name() + "." + std::to_string(getpid());
}

}  // namespace

Result<FileWriter> FileWriter::create(const std::filesystem::path& path) {
  const std::string name = unfinished(path).string();
  Result<UniqueFd> file = open_file(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (!file) return file.error();
  FileWriter writer(path, std::move(*file));
  if (Status status = writer.put(kHeader); !status) return status.error();
  return writer;
}

Status FileWriter::put(std::string_view bytes) {
  if (buffer_.size() + bytes.size() >= kBufferBytes) {
    if (Status status = flush(); !status) return status;
  }
  if (bytes.size() >= kBufferBytes) {
    flushed_bytes_ += bytes.size();
    return write_all(file_.get(), bytes.data(), bytes.size());
  }
  buffer_.append(bytes);
  return {};
}

Status FileWriter::flush() {
  Status status = write_all(file_.get(), buffer_.data(), buffer_.size());
  flushed_bytes_ += buffer_.size();
  buffer_.clear();
  return status;
}

Status FileWriter::add(uint64_t key, std::string_view bytes) {
  if (bytes.size() > kMaxBlockBytes)
    return Error{Code::kUnavailable, "a share knows more of one process than can be handed over"};
  index_.push_back({key, flushed_bytes_ + buffer_.size()});
  Status status = put(bytes_of({bytes.size(), spool::crc32c(bytes.data(), bytes.size())}));
  return status ? put(bytes) : status;
}

Status FileWriter::finish() {
  std::stable_sort(index_.begin(), index_.end(),
                   [](const IndexEntry& a, const IndexEntry& b) { return a.key < b.key; });
  StateOut out;
  out.put(index_);
  const uint64_t offset = flushed_bytes_ + buffer_.size();
  const std::string& index = out.bytes();
  Status status = put(bytes_of({index.size(), spool::crc32c(index.data(), index.size())}));
  if (status) status = put(index);
  if (status) status = put({reinterpret_cast<const char*>(&offset), sizeof(offset)});
  if (status) status = flush();
  if (!status) return status;
  const std::string name = unfinished(path_).string();
  // Network file systems write, and fail to, when a file is closed.
  const int fd = file_.release();
  if (close(fd) != 0) return errno_error("write", name, errno);
  if (rename(name.c_str(), path_.c_str()) != 0) return errno_error("rename", name, errno);
  return {};
}

Result<FileReader> FileReader::open(const std::filesystem::path& path) {
  Result<UniqueFd> file = open_file(path.string(), O_RDONLY | O_NOFOLLOW);
  if (!file) return file.error();
  FileReader reader(path, std::move(*file));
  if (Status status = reader.read_index(); !status) return status.error();
  return reader;
}

Error FileReader::damage() const {
  return {Code::kDamaged, path_.string() + " is damaged or of another version"};
}

Status FileReader::read_index() {
  struct stat about {};
  if (fstat(file_.get(), &about) != 0) return errno_error("look at", path_.string(), errno);
  if (!is_own_file(file_.get(), path_.string())) return damage();
  file_bytes_ = static_cast<uint64_t>(about.st_size);
  std::string header(kHeader.size(), '\0');
  Result<size_t> count = read_at(file_.get(), header.data(), header.size(), 0);
  if (!count) return count.error();
  uint64_t offset = 0;
  if (header != kHeader || file_bytes_ < kHeader.size() + sizeof(offset)) return damage();
  count = read_at(file_.get(), &offset, sizeof(offset), file_bytes_ - sizeof(offset));
  if (!count) return count.error();
  std::string bytes;
  if (Status status = read_block(offset, &bytes); !status) return status;
  StateIn in(bytes);
  return in.get(&index_) ? Status() : damage();
}

Status FileReader::read_block(uint64_t offset, std::string* bytes) const {
  BlockHead head{};
  if (offset > file_bytes_ || file_bytes_ - offset < sizeof(head)) return damage();
  Result<size_t> count = read_at(file_.get(), &head, sizeof(head), offset);
  if (!count) return count.error();
  const uint64_t left_bytes = file_bytes_ - offset - sizeof(head);
  if (*count != sizeof(head) || head.byte_count > std::min(left_bytes, kMaxBlockBytes))
    return damage();
  bytes->resize(head.byte_count);
  count = read_at(file_.get(), bytes->data(), bytes->size(), offset + sizeof(head));
  if (!count) return count.error();
  const bool is_whole = *count == bytes->size();
  if (!is_whole || spool::crc32c(bytes->data(), bytes->size()) != head.crc) return damage();
  return {};
}

Status FileReader::for_each(uint64_t key, const Sink& sink) const {
  auto entry =
      std::lower_bound(index_.begin(), index_.end(), key,
                       [](const IndexEntry& a, uint64_t wanted) { return a.key < wanted; });
  std::string bytes;
  for (; entry != index_.end() && entry->key == key; ++entry) {
    Status status = read_block(entry->offset, &bytes);
    if (status) status = sink(bytes);
    if (!status) return status;
  }
  return {};
}

Status FileReader::read(uint64_t key, const Sink& sink) const {
  size_t count = 0;
  Status status = for_each(key, [&](std::span<const char> bytes) {
    return ++count == 1 ? sink(bytes) : Status(damage());
  });
  if (status && count == 0) return damage();
  return status;
}

}  // namespace aon::writers::share
