#include "core/cluster/address.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <nettle/sha2.h>
#include <poll.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "core/base/answer_within.h"
#include "core/base/file.h"
#include "core/base/lease.h"
#include "core/base/owner.h"

namespace aon::cluster {
namespace {

constexpr char kFirstLine[] = "aon-agent 1";
constexpr char kSuffix[] = ".address";
constexpr size_t kMaxFileBytes = 4096;
constexpr int kBacklog = 128;
constexpr std::chrono::seconds kNamePatience(2);
constexpr uint32_t kLinkLocal = 0xa9fe;  ///< 169.254/16 (RFC 3927)

/// Interfaces of containers and virtual machines on this node lead to no other node.
constexpr const char* kVirtual[] = {"docker", "virbr", "veth", "cni", "flannel", "br-", "podman"};

std::string hex(const Token& token) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : token) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

bool parse_hex(std::string_view text, Token* token) {
  if (text.size() != 2 * token->size()) return false;
  for (size_t i = 0; i < token->size(); ++i) {
    const char* first = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(first, first + 2, (*token)[i], 16);
    if (error != std::errc() || end != first + 2) return false;
  }
  return true;
}

/// Of the 16 random bytes that the kernel gave this program when it started.
Token token_of_exec() {
  static std::atomic<uint64_t> count{0};
  const uint64_t number = count.fetch_add(1) + 1;
  const pid_t pid = getpid();
  sha256_ctx context;
  sha256_init(&context);
  const auto* random = reinterpret_cast<const uint8_t*>(getauxval(AT_RANDOM));
  if (random != nullptr) sha256_update(&context, 16, random);
  sha256_update(&context, sizeof number, reinterpret_cast<const uint8_t*>(&number));
  sha256_update(&context, sizeof pid, reinterpret_cast<const uint8_t*>(&pid));
  Token token{};
  sha256_digest(&context, token.size(), token.data());
  return token;
}

/// Others may do nothing with it. A file's mode is not mended: they may have read its token, or
/// written it.
bool is_private(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 && (status.st_mode & 077) == 0;
}

/// A numeric address and port as the sockets want it.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
};

bool resolve_numeric(const std::string& host, uint16_t port, SocketAddress* address) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return false;
  std::memcpy(&address->storage, found->ai_addr, found->ai_addrlen);
  address->bytes = found->ai_addrlen;
  freeaddrinfo(found);
  return true;
}

struct Interface {
  std::string address;
  bool is_loopback;
  bool is_virtual;
  bool is_ipv4;
};

std::vector<Interface> read_interfaces() {
  std::vector<Interface> result;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return result;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    const std::string text = numeric(one->ifa_addr);
    if (text.empty()) continue;
    const bool is_virtual = std::any_of(
        std::begin(kVirtual), std::end(kVirtual),
        [&](const char* prefix) { return std::string_view(one->ifa_name).starts_with(prefix); });
    result.push_back({text, (one->ifa_flags & IFF_LOOPBACK) != 0, is_virtual,
                      one->ifa_addr->sa_family == AF_INET});
  }
  freeifaddrs(all);
  return result;
}

std::vector<std::string> look_up_own_name() {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  std::vector<std::string> result;
  if (getaddrinfo(local_host_name().c_str(), nullptr, &hints, &found) != 0) return result;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next)
    result.push_back(numeric(one->ai_addr));
  freeaddrinfo(found);
  return result;
}

/// None where name servers are dead, which they take half a minute to say: at the end of a job
/// somebody waits for it.
std::vector<std::string> addresses_of_own_name() {
  return answer_within(kNamePatience, look_up_own_name).value_or(std::vector<std::string>());
}

}  // namespace

std::string numeric(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address->sa_family == AF_INET) {
    const auto* four = reinterpret_cast<const sockaddr_in*>(address);
    if (ntohl(four->sin_addr.s_addr) >> 16 != kLinkLocal)
      inet_ntop(AF_INET, &four->sin_addr, text, sizeof(text));
  }
  if (address->sa_family == AF_INET6) {
    const auto* six = reinterpret_cast<const sockaddr_in6*>(address);
    if (!IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
      inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof(text));
  }
  return text;
}

std::string agents_folder(const std::string& job_folder) { return job_folder + "/agents"; }

Status make_agents_folder(const std::string& job_folder) {
  return make_private_folder(agents_folder(job_folder));
}

Status make_private_folder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0) return {};
  if (errno != EEXIST) return errno_error("cannot create", path, errno);
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  // It has gone again, or a descriptor is not to be had: that says nothing of whose it is.
  if (!fd && errno != ELOOP && errno != ENOTDIR && errno != EACCES)
    return errno_error("cannot open", path, errno);
  if (fd && is_of_this_user(fd.get()) &&
      (is_private(fd.get()) || (fchmod(fd.get(), 0700) == 0 && is_private(fd.get()))))
    return {};
  return Error{Code::kInvalid, path + " is not a private folder of this user"};
}

Token random_token() {
  Token token{};
  size_t filled = 0;
  while (filled < token.size()) {
    const ssize_t got = getrandom(token.data() + filled, token.size() - filled, 0);
    if (got < 0 && errno != EINTR) break;
    if (got > 0) filled += static_cast<size_t>(got);
  }
  if (filled == token.size()) return token;
  const UniqueFd device(open("/dev/urandom", O_RDONLY | O_CLOEXEC));
  const ssize_t got = read(device.get(), token.data(), token.size());
  return got == static_cast<ssize_t>(token.size()) ? token : token_of_exec();
}

Status write_address(const std::string& agents, const std::string& node,
                     const AgentAddress& address) {
  std::string text = std::string(kFirstLine) + "\ntoken " + hex(address.token) + "\n";
  for (const Endpoint& endpoint : address.endpoints)
    text += "at " + endpoint.host + " " + std::to_string(endpoint.port) + "\n";
  const std::string path = agents + "/" + node + kSuffix;
  const std::string fresh = agents + "/." + node + kSuffix;
  unlink(fresh.c_str());
  auto file = open_file(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
  if (!file) return file.error();
  if (fchmod(file->get(), 0600) == 0 && write_all(file->get(), text.data(), text.size()) &&
      rename(fresh.c_str(), path.c_str()) == 0)
    return {};
  const Error error = errno_error("cannot write", path, errno);
  unlink(fresh.c_str());  // the folder goes when nothing is in it
  return error;
}

void remove_address(const std::string& agents, const std::string& node) {
  unlink((agents + "/" + node + kSuffix).c_str());
}

Result<AgentAddress> read_address(const std::string& agents, const std::string& node) {
  const std::string path = agents + "/" + node + kSuffix;
  const Result<UniqueFd> folder = open_file(agents, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!folder) return folder.error();
  const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const UniqueFd file(openat(folder->get(), (node + kSuffix).c_str(), flags));
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0) return errno_error("cannot read", path, errno);
  if (!S_ISREG(status.st_mode) || !is_private(file.get()) ||
      !is_of_this_user(folder->get(), file.get()))
    return Error{Code::kInvalid, path + " is not a private file of this user"};
  char buffer[kMaxFileBytes];
  const ssize_t got = read(file.get(), buffer, sizeof(buffer));
  if (got < 0) return errno_error("cannot read", path, errno);
  std::istringstream lines(std::string(buffer, static_cast<size_t>(got)));
  std::string line;
  AgentAddress address{};
  const bool has_head = std::getline(lines, line) && line == kFirstLine &&
                        std::getline(lines, line) && line.starts_with("token ") &&
                        parse_hex(std::string_view(line).substr(6), &address.token);
  if (!has_head) return Error{Code::kInvalid, path + " is no address of an agent"};
  std::string word;
  Endpoint endpoint;
  while (address.endpoints.size() < kMaxEndpoints &&
         lines >> word >> endpoint.host >> endpoint.port)
    address.endpoints.push_back(endpoint);
  return address;
}

std::vector<std::string> list_nodes(const std::string& agents) {
  std::vector<std::string> nodes;
  std::error_code error;
  // The folder may go while it is read; ++ would throw then.
  for (std::filesystem::directory_iterator at(agents, error), end; !error && at != end;
       at.increment(error)) {
    const std::filesystem::path name = at->path().filename();
    if (name.extension() == kSuffix && name.string().front() != '.')
      nodes.push_back(name.stem().string());
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

std::vector<std::string> own_addresses() {
  const std::vector<Interface> interfaces = read_interfaces();
  std::vector<std::string> result;
  const auto add = [&](const std::string& address) {
    if (result.size() < kMaxEndpoints &&
        std::find(result.begin(), result.end(), address) == result.end())
      result.push_back(address);
  };
  for (const std::string& address : addresses_of_own_name()) {
    const auto found = std::find_if(interfaces.begin(), interfaces.end(),
                                    [&](const Interface& i) { return i.address == address; });
    if (found != interfaces.end() && !found->is_loopback) add(address);
  }
  if (!result.empty()) return result;
  for (const bool wants_ipv4 : {true, false}) {
    for (const Interface& one : interfaces) {
      if (!one.is_loopback && !one.is_virtual && one.is_ipv4 == wants_ipv4) add(one.address);
    }
  }
  if (result.empty()) add("127.0.0.1");
  return result;
}

Result<UniqueFd> listen_on(const std::string& host, uint16_t* port) {
  SocketAddress address;
  if (!resolve_numeric(host, 0, &address)) return Error{Code::kInvalid, host + " is no address"};
  UniqueFd fd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd || bind(fd.get(), reinterpret_cast<sockaddr*>(&address.storage), address.bytes) != 0 ||
      listen(fd.get(), kBacklog) != 0)
    return errno_error("cannot listen on", host, errno);
  if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address.storage), &address.bytes) != 0)
    return errno_error("cannot listen on", host, errno);
  *port = ntohs(address.storage.ss_family == AF_INET
                    ? reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port
                    : reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_port);
  return fd;
}

Result<UniqueFd> connect_to(const Endpoint& endpoint, int timeout_ms) {
  SocketAddress address;
  if (!resolve_numeric(endpoint.host, endpoint.port, &address))
    return Error{Code::kInvalid, endpoint.host + " is no address"};
  UniqueFd fd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno_error("cannot connect to", endpoint.host, errno);
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address.storage), address.bytes) != 0) {
    if (errno != EINPROGRESS) return errno_error("cannot connect to", endpoint.host, errno);
    pollfd writable{fd.get(), POLLOUT, 0};
    if (poll(&writable, 1, timeout_ms) != 1)
      return errno_error("cannot connect to", endpoint.host, ETIMEDOUT);
    int problem = 0;
    socklen_t bytes = sizeof(problem);
    getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &problem, &bytes);
    if (problem != 0) return errno_error("cannot connect to", endpoint.host, problem);
  }
  const int on = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
  return fd;
}

}  // namespace aon::cluster
