#include "tools/ras.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string_view>

#include "core/base/answer_within.h"
#include "core/base/unique_fd.h"

namespace aon::tools {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::string_view kQuestion = "verbose status\n";

struct AddressCloser {
  void operator()(addrinfo* addresses) const { ::freeaddrinfo(addresses); }
};
using Addresses = std::unique_ptr<addrinfo, AddressCloser>;

class Deadline {
 public:
  explicit Deadline(int64_t timeout_ms)
      : end_(Clock::now() + std::chrono::milliseconds(timeout_ms)) {}

  int64_t left_ms() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(end_ - Clock::now()).count();
  }

  /// True when `fd` is ready for `events`, false when the time is over.
  bool wait(int fd, short events) const {
    for (;;) {
      const int64_t left = left_ms();
      if (left <= 0) return false;
      pollfd poll_fd{fd, events, 0};
      const int ready = ::poll(&poll_fd, 1, static_cast<int>(left));
      if (ready >= 0) return ready != 0;
      if (errno != EINTR) return false;
    }
  }

 private:
  Clock::time_point end_;
};

Error silent(const std::string& address) {
  return {Code::kNotFound, "NCCL's RAS service at " + address + " does not answer"};
}

/// Null: not known.
Addresses ask_for(const std::string& host, const std::string& port) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  return Addresses(::getaddrinfo(host.c_str(), port.c_str(), &wanted, &found) == 0 ? found
                                                                                   : nullptr);
}

Result<Addresses> look_up(const std::string& address, const Deadline& deadline) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon + 1 == address.size())
    return Error{Code::kInvalid, "'" + address + "' is no address like localhost:28028"};
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  auto found =
      answer_within(std::chrono::milliseconds(deadline.left_ms()),
                    [host, port = address.substr(colon + 1)] { return ask_for(host, port); });
  if (!found) return Error{Code::kNotFound, "no name server tells what '" + address + "' is"};
  if (!*found) return Error{Code::kInvalid, "'" + address + "' is no address that is known here"};
  return std::move(*found);
}

/// Connected in its share of the time, or not.
UniqueFd connect_to(const addrinfo& address, const Deadline& share) {
  UniqueFd fd(::socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return fd;
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return fd;
  if (errno != EINPROGRESS || !share.wait(fd.get(), POLLOUT)) return UniqueFd();
  int error = 0;
  socklen_t bytes = sizeof error;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &bytes) != 0 || error != 0)
    return UniqueFd();
  return fd;
}

/// The first of the addresses that can be connected; a dead one leaves time to those behind it.
UniqueFd connect_to_any(const addrinfo* addresses, const Deadline& deadline) {
  int64_t count = 1;  // of those to come, and the answer
  for (const addrinfo* one = addresses; one != nullptr; one = one->ai_next) ++count;
  for (const addrinfo* one = addresses; one != nullptr; one = one->ai_next, --count) {
    UniqueFd fd = connect_to(*one, Deadline(deadline.left_ms() / count));
    if (fd) return fd;
  }
  return UniqueFd();
}

/// What comes until the other side closes; else, when the time is over or it is enough, cut off.
std::string read_answer(int fd, const Deadline& deadline, bool* is_cut_off) {
  std::string answer;
  char buffer[4096];
  *is_cut_off = true;
  while (answer.size() <= kRasMaxBytes && deadline.wait(fd, POLLIN)) {
    const ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    *is_cut_off = got != 0;
    if (got <= 0) break;
    answer.append(buffer, static_cast<size_t>(got));
  }
  if (answer.size() > kRasMaxBytes) {
    answer.resize(kRasMaxBytes);
    *is_cut_off = true;
  }
  return answer;
}

/// Of somebody else: nothing that a terminal would heed, in whatever encoding.
std::vector<std::string> lines_of(const std::string& answer) {
  std::vector<std::string> lines(1);
  for (const char c : answer) {
    if (c == '\n') {
      lines.emplace_back();
    } else if (c >= 0x20 && c <= 0x7e) {
      lines.back() += c;
    } else if (c != '\r') {
      lines.back() += c == '\t' ? ' ' : '?';
    }
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

}  // namespace

Result<std::vector<std::string>> ask_ras(const std::string& address, int timeout_ms) {
  const Deadline deadline(timeout_ms);
  const Result<Addresses> addresses = look_up(address, deadline);
  if (!addresses) return addresses.error();
  const UniqueFd fd = connect_to_any(addresses->get(), deadline);
  if (!fd || !deadline.wait(fd.get(), POLLOUT)) return silent(address);
  const ssize_t sent = ::send(fd.get(), kQuestion.data(), kQuestion.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(kQuestion.size())) return silent(address);
  bool is_cut_off = false;
  std::vector<std::string> lines = lines_of(read_answer(fd.get(), deadline, &is_cut_off));
  if (lines.empty()) return silent(address);
  if (is_cut_off) lines.push_back(kRasCutOff);
  return lines;
}

}  // namespace aon::tools
