/// A program of the tests, run with its own environment and its output caught.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace aon::test {

using Environment = std::vector<std::pair<std::string, std::string>>;

class Child {
 public:
  /// Starts `arguments[0]` with `environment` added to ours. Its stdin and stdout are pipes.
  Child(const std::vector<std::string>& arguments, const Environment& environment);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int32_t pid() const { return pid_; }
  /// The next line of its output, without the newline; empty at the end.
  std::string read_line();
  void write(const std::string& text);
  void kill(int signal);
  /// Reads the rest of the output and waits. Returns the exit code, or 128 + signal.
  int wait();
  const std::string& output() const { return output_; }
  /// The number behind the last line that begins with `word`; -1 without one.
  int64_t number_behind(const std::string& word) const;

 private:
  int32_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  int status_ = -1;
  std::string output_;
};

}  // namespace aon::test
