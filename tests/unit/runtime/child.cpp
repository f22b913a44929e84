#include "tests/unit/runtime/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

namespace aon::test {

Child::Child(const std::vector<std::string>& arguments, const Environment& environment) {
  int in[2];
  int out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) abort();
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  std::vector<std::string> texts;
  for (const auto& [name, value] : environment) texts.push_back(name + "=" + value);
  for (char** entry = environ; *entry != nullptr; ++entry) texts.push_back(*entry);
  std::vector<char*> envp;
  for (std::string& text : texts) envp.push_back(text.data());
  envp.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  ::close(in[0]);
  ::close(out[1]);
  in_ = in[1];
  out_ = out[0];
}

Child::~Child() {
  if (status_ < 0) {
    kill(SIGKILL);
    wait();
  }
  ::close(in_);
  ::close(out_);
}

std::string Child::read_line() {
  std::string line;
  char c = 0;
  while (::read(out_, &c, 1) == 1) {
    output_ += c;
    if (c == '\n') break;
    line += c;
  }
  return line;
}

void Child::write(const std::string& text) {
  if (::write(in_, text.data(), text.size()) < 0) abort();
}

void Child::kill(int signal) { ::kill(pid_, signal); }

int Child::wait() {
  if (status_ >= 0) return status_;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(out_, buffer, sizeof buffer)) > 0;) {
    output_.append(buffer, static_cast<size_t>(got));
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return status_;
}

int64_t Child::number_behind(const std::string& word) const {
  std::istringstream lines(output_);
  int64_t number = -1;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(word + " ", 0) == 0) number = atoll(line.c_str() + word.size() + 1);
  }
  return number;
}

}  // namespace aon::test
