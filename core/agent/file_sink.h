/// Where the agent's bytes go: the few file operations of the spool behind one seam, so that tests
/// can inject a full disk or a blocked write. Offsets are explicit: a file is never appended to
/// blindly.
/// Thread: the encode thread.   Errors: errno values, 0 is success.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace aon::agent {

/// Of a file system, for users without privileges. A quota does not show in it.
struct DiskSpace {
  uint64_t free_bytes;
  uint64_t all_bytes;
};

class FileSink {
 public:
  virtual ~FileSink() = default;
  /// Opens (creates 0600, never through a symbolic link) `name` of the spool folder for writing.
  /// Returns the descriptor, or -errno.
  virtual int open(const std::string& name) = 0;
  virtual void close(int fd) = 0;
  /// Writes all of `bytes` at `offset`. On an error nothing behind `offset` counts as written.
  virtual int write(int fd, std::span<const uint8_t> bytes, uint64_t offset) = 0;
  virtual int truncate(int fd, uint64_t bytes) = 0;
  /// Waits until what was written to it is on the disk.
  virtual int sync(int fd) = 0;
  /// Sets `bytes` of disk from `offset` on aside for this file, whose length stays. Not every file
  /// system can.
  virtual int reserve(int, uint64_t, uint64_t) { return 0; }
  virtual int unlink(const std::string& name) = 0;
  virtual int rename(const std::string& from, const std::string& to) = 0;
  /// nullopt: not known.
  virtual std::optional<DiskSpace> space() { return std::nullopt; }
};

/// The real one, below a folder's descriptor.
class FolderSink : public FileSink {
 public:
  explicit FolderSink(int folder_fd) : folder_fd_(folder_fd) {}
  int open(const std::string& name) override;
  void close(int fd) override;
  int write(int fd, std::span<const uint8_t> bytes, uint64_t offset) override;
  int truncate(int fd, uint64_t bytes) override;
  int sync(int fd) override;
  int reserve(int fd, uint64_t offset, uint64_t bytes) override;
  int unlink(const std::string& name) override;
  int rename(const std::string& from, const std::string& to) override;
  std::optional<DiskSpace> space() override;

 private:
  int folder_fd_;
};

}  // namespace aon::agent
