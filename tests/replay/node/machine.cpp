#include "tests/replay/node/machine.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <stdexcept>

namespace aon::node::test {
namespace {

int error_of(const std::string& name) {
  if (name == "EACCES") return EACCES;
  if (name == "ESRCH") return ESRCH;
  if (name == "EPERM") return EPERM;
  if (name == "EBUSY") return EBUSY;
  if (name == "EIO") return EIO;
  throw std::invalid_argument("unknown error " + name);
}

std::string event_key(uint32_t type, uint64_t config, int cpu) {
  char text[64];
  snprintf(text, sizeof(text), "%u/0x%llx/%d", type, static_cast<unsigned long long>(config), cpu);
  return text;
}

}  // namespace

Machine::Machine(const std::string& text) : System("") {
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines_.push_back(line);
  while (position_ < lines_.size() && !lines_[position_].starts_with(">")) apply(lines_[position_]);
}

std::string Machine::next() {
  if (position_ >= lines_.size()) return "";
  const std::string step = lines_[position_++].substr(2);
  while (position_ < lines_.size() && !lines_[position_].starts_with(">")) apply(lines_[position_]);
  return step;
}

void Machine::set_event(const std::string& text) {
  const size_t space = text.find(' ');
  Counter counter;
  std::istringstream rest(text.substr(space + 1));
  std::string sign;
  rest >> sign;
  if (sign == "=") {
    rest >> counter.words[0] >> counter.words[1] >> counter.words[2];
  } else {
    counter.error_number = error_of(sign.substr(1));
  }
  events_[text.substr(0, space)] = counter;
}

void Machine::apply(const std::string& line) {
  ++position_;
  if (line.empty() || line[0] == '#') return;
  const size_t space = line.find(' ');
  if (space == std::string::npos) throw std::invalid_argument("not a line of a machine: " + line);
  const std::string path = line.substr(0, space);
  const std::string rest = line.substr(space + 1);
  if (path == "event") {
    set_event(rest);
  } else if (rest == "gone") {
    std::erase_if(files_, [&](const auto& entry) {
      return entry.first == path || entry.first.starts_with(path + "/");
    });
  } else if (rest == "exists") {
    files_.emplace(path, File{});  // what it holds may be known already
  } else if (rest.starts_with("!")) {
    files_[path] = {error_of(rest.substr(1)), ""};
  } else if (rest == "<<") {
    File file;
    while (lines_.at(position_) != ".") file.text += lines_[position_++] + "\n";
    ++position_;
    files_[path] = file;
  } else {
    files_[path] = {0, rest.substr(2) + "\n"};
  }
}

File Machine::read(const std::string& path, size_t max_bytes) const {
  const auto found = files_.find(path);
  if (found == files_.end()) return {ENOENT, ""};
  File file = found->second;
  if (file.text.size() > max_bytes) file.text.resize(max_bytes);
  return file;
}

std::vector<std::string> Machine::list(const std::string& folder) const {
  const std::string prefix = folder.ends_with("/") ? folder : folder + "/";
  std::set<std::string> names;
  for (auto at = files_.lower_bound(prefix); at != files_.end() && at->first.starts_with(prefix);
       ++at) {
    const std::string rest = at->first.substr(prefix.size());
    names.insert(rest.substr(0, rest.find('/')));
  }
  return {names.begin(), names.end()};
}

bool Machine::exists(const std::string& path) const {
  return files_.count(path) != 0 || !list(path).empty();
}

int Machine::open_event(const perf_event_attr& attr, int cpu) {
  const std::string key = event_key(attr.type, attr.config, cpu);
  const auto found = events_.find(key);
  if (found == events_.end()) return -ENOENT;
  if (found->second.error_number != 0) return -found->second.error_number;
  open_[next_fd_] = key;
  return next_fd_++;
}

ssize_t Machine::read_event(int fd, void* data, size_t size_bytes) {
  const auto found = open_.find(fd);
  if (found == open_.end()) return -EBADF;
  const Counter& counter = events_.at(found->second);
  if (counter.error_number != 0) return -counter.error_number;
  if (size_bytes != sizeof(counter.words)) return -EINVAL;
  memcpy(data, counter.words, size_bytes);
  return static_cast<ssize_t>(size_bytes);
}

void Machine::close_event(int fd) { open_.erase(fd); }

}  // namespace aon::node::test
