/// What a child that will be killed tells its test: one page of shared memory that outlives it.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace aon::test {

struct Oracle {
  std::atomic<uint64_t> returned[8];  ///< events of each thread whose emit has returned
  std::atomic<uint64_t> refused[8];   ///< those of them that were refused
  std::atomic<uint32_t> is_done;
};

/// Maps the page in the file `path`.
inline Oracle* map_oracle(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, 4096) != 0) abort();
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (page == MAP_FAILED) abort();
  return static_cast<Oracle*>(page);
}

/// A fresh page and the name of its file; removed with it.
class OracleFile {
 public:
  OracleFile() {
    char name[] = "/dev/shm/aon-oracle-XXXXXX";
    const int fd = mkstemp(name);
    if (fd >= 0) close(fd);
    path_ = name;
    oracle_ = map_oracle(path_);
  }
  ~OracleFile() {
    munmap(oracle_, 4096);
    unlink(path_.c_str());
  }
  OracleFile(const OracleFile&) = delete;
  OracleFile& operator=(const OracleFile&) = delete;
  const std::string& path() const { return path_; }
  Oracle* operator->() const { return oracle_; }

 private:
  std::string path_;
  Oracle* oracle_;
};

}  // namespace aon::test
