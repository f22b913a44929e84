#include "core/base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>

namespace aon {
namespace {

class File : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/aon-file-test-XXXXXX";
    UniqueFd fd(::mkstemp(name));
    ASSERT_TRUE(fd);
    path_ = name;
  }
  void TearDown() override { ::unlink(path_.c_str()); }
  std::string path_;
};

TEST_F(File, reads_what_was_written) {
  Result<UniqueFd> fd = open_file(path_, O_RDWR);
  ASSERT_TRUE(fd.has_value());
  ASSERT_TRUE(write_all(fd->get(), "0123456789", 10).has_value());
  char part[8] = {};
  const Result<size_t> got = read_at(fd->get(), part, 4, 3);
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(*got, 4u);
  EXPECT_STREQ(part, "3456");
  EXPECT_EQ(*read_at(fd->get(), part, sizeof(part), 8), 2u);
  EXPECT_EQ(*read_text_file(path_), "0123456789");
  EXPECT_EQ(*read_text_file(path_, 4), "0123");
}

TEST_F(File, text_of_proc_has_no_size_and_is_read) {
  const Result<std::string> status = read_text_file("/proc/self/status");
  ASSERT_TRUE(status.has_value());
  EXPECT_NE(status->find("Pid:"), std::string::npos);
}

TEST_F(File, errors_name_the_file_and_the_kind) {
  const auto missing = open_file(path_ + ".none", O_RDONLY);
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_NE(missing.error().message.find(".none"), std::string::npos);
  EXPECT_EQ(errno_error("open", "x", EACCES).code, Code::kUnavailable);
  EXPECT_EQ(write_all(-1, "x", 1).error().code, Code::kIo);
}

TEST_F(File, a_pipe_or_device_in_its_place_is_refused_without_waiting) {
  const std::string pipe = path_ + ".pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(open_file(pipe, O_RDONLY).error().code, Code::kInvalid);
  EXPECT_EQ(open_file(pipe, O_WRONLY | O_CREAT | O_TRUNC).error().code, Code::kInvalid);
  EXPECT_EQ(read_text_file(pipe).error().code, Code::kInvalid);
  EXPECT_TRUE(open_file(pipe, O_RDONLY | O_NONBLOCK).has_value()) << "who asks for it gets it";
  ::unlink(pipe.c_str());
  EXPECT_EQ(open_file("/dev/zero", O_RDONLY).error().code, Code::kInvalid);
  EXPECT_TRUE(open_file("/tmp", O_RDONLY | O_DIRECTORY).has_value());
}

TEST_F(File, descriptors_are_closed_once_and_not_inherited) {
  int number = -1;
  {
    Result<UniqueFd> fd = open_file(path_, O_RDONLY);
    ASSERT_TRUE(fd.has_value());
    number = fd->get();
    EXPECT_NE(::fcntl(number, F_GETFD) & FD_CLOEXEC, 0);
    UniqueFd moved = std::move(*fd);
    EXPECT_FALSE(*fd);
    EXPECT_EQ(moved.get(), number);
  }
  struct stat info;
  EXPECT_EQ(::fstat(number, &info), -1);
}

}  // namespace
}  // namespace aon
