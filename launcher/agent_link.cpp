#include "launcher/agent_link.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <system_error>

#include "core/agent/affinity.h"
#include "core/base/account.h"
#include "core/base/avoid_list.h"
#include "core/base/file.h"
#include "core/base/lease.h"
#include "core/base/name_hash.h"
#include "core/runtime/rank.h"
#include "launcher/runtime_folder.h"

extern char** environ;

namespace aon::launcher {
namespace {

constexpr int kJoinTries = 100;           ///< of 1 ms each: the winner only has to bind
constexpr int kBacklog = 4096;            ///< ranks that may register before the agent runs
constexpr int kAgentFirstDescriptor = 3;  ///< listener; the lock is the next
constexpr rlim_t kAgentDescriptors = 40;  ///< of the agent itself, with some for counters
constexpr size_t kMaxLeftovers = 1000;    ///< tried of a folder; the rest the next time
constexpr size_t kMaxAvoided = 100;       ///< programs; on the agent's command line
constexpr rlim_t kRankDescriptors = 6;    ///< connection, ring, pidfds, file; counters come on top

Error system_error(const std::string& what) {
  return {Code::kUnavailable, what + ": " + strerror(errno)};
}

bool fill_address(const std::string& path, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return false;
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return true;
}

/// Takes the lock if it is free and its file still has its name.
Result<UniqueFd> try_lock(const std::string& path) {
  UniqueFd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return system_error("cannot open " + path);
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return Error{Code::kBusy, path + " is held"};
    return system_error("cannot lock " + path);
  }
  struct stat held {};
  struct stat named {};
  if (fstat(lock.get(), &held) != 0 || stat(path.c_str(), &named) != 0 ||
      held.st_ino != named.st_ino) {
    return Error{Code::kBusy, path + " was removed"};
  }
  return lock;
}

/// True for the socket of a waiter that was killed.
bool is_deserted(const std::string& path) {
  sockaddr_un address{};
  if (!fill_address(path, address)) return false;
  const UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return fd && connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 &&
         errno == ECONNREFUSED;
}

Result<UniqueFd> listen_on(const std::string& path) {
  Result<UniqueFd> listener = bind_socket(SOCK_SEQPACKET, path);
  if (!listener) return listener.error();
  if (listen(listener->get(), kBacklog) != 0) return system_error("cannot listen on " + path);
  return listener;
}

agent::MessageHeader header_of(agent::MessageType type, uint32_t bytes) {
  return {agent::kProtocolMagic, agent::kProtocolVersion, type, bytes};
}

Status send_packet(int connection, const void* packet, size_t bytes) {
  if (send(connection, packet, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes)) return {};
  return system_error("cannot reach the agent");
}

void pause_one_ms() {
  const timespec pause{0, 1'000'000};
  nanosleep(&pause, nullptr);
}

/// The descriptors and signals the agent starts with; everything else it closes itself.
void prepare_spawn(posix_spawn_file_actions_t& actions, posix_spawnattr_t& attributes,
                   const AgentLink& link) {
  posix_spawn_file_actions_init(&actions);
  for (int fd = 0; fd < kAgentFirstDescriptor; ++fd)
    posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  posix_spawn_file_actions_adddup2(&actions, link.listener.get(), kAgentFirstDescriptor);
  posix_spawn_file_actions_adddup2(&actions, link.lock.get(), kAgentFirstDescriptor + 1);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
                                            POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_USEVFORK);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
}

struct Spawned {
  int error_number;
  pid_t pid;
};

/// Calls `spawn` in a process in between, which then ends: what it starts is no child of ours, nor
/// of the program that takes our place and may wait for all its children.
Spawned spawn_orphan(const std::function<int(pid_t*)>& spawn) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {errno, -1};
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  Spawned spawned{ECHILD, -1};
  const pid_t between = fork();
  if (between < 0) return {errno, -1};
  if (between == 0) {
    agent::affinity::reset();  // or what it starts would load on the core that a rank is bound to
    spawned.error_number = spawn(&spawned.pid);
    const bool is_told = write(to.get(), &spawned, sizeof(spawned)) == sizeof(spawned);
    _exit(is_told ? 0 : 1);
  }
  to.reset();
  ssize_t count = -1;
  do {
    count = read(from.get(), &spawned, sizeof(spawned));
  } while (count < 0 && errno == EINTR);
  while (waitpid(between, nullptr, 0) < 0 && errno == EINTR) continue;
  if (count != sizeof(spawned)) return {ECHILD, -1};
  return spawned;
}

/// The agent must not profile itself: environ without LD_PRELOAD.
std::vector<char*> environment_without_preload() {
  std::vector<char*> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (strncmp(*entry, "LD_PRELOAD=", 11) != 0) kept.push_back(*entry);
  }
  kept.push_back(nullptr);
  return kept;
}

}  // namespace

std::string socket_path(const std::string& launch_id, const std::string& output) {
  return runtime_folder() + "/" + name_hash(local_host_name() + "\n" + launch_id + "\n" + output);
}

Result<UniqueFd> bind_socket(int type, const std::string& path) {
  sockaddr_un address{};
  if (!fill_address(path, address))
    return Error{Code::kUnavailable, path + " is too long for a socket"};
  UniqueFd bound(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!bound) return system_error("cannot create a socket");
  unlink(path.c_str());
  const mode_t old_mask = umask(0077);
  const int result = bind(bound.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address));
  const int error_number = errno;
  umask(old_mask);
  errno = error_number;
  if (result != 0) return system_error("cannot bind " + path);
  return bound;
}

namespace {

/// As the agent judges who connects, and the runtime whom it connects to.
bool is_of_this_user(const UniqueFd& connection) {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  const auto euid = static_cast<uid_t>(syscall(SYS_geteuid));  // not what fakeroot says
  return getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
         peer.uid == euid;
}

}  // namespace

Result<UniqueFd> connect_agent(const std::string& path) {
  sockaddr_un address{};
  if (!fill_address(path, address)) return Error{Code::kNotFound, path + " is too long"};
  UniqueFd connection(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!connection) return system_error("cannot create a socket");
  if (connect(connection.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    const bool is_dead = errno == ECONNREFUSED || errno == ENOENT;
    const Code code = errno == EAGAIN ? Code::kBusy : is_dead ? Code::kNotFound : Code::kIo;
    return Error{code, "no agent on " + path + ": " + strerror(errno)};
  }
  if (!is_of_this_user(connection))
    return Error{Code::kUnavailable, "the agent on " + path + " is another user's"};
  return connection;
}

namespace {

/// `name` without `suffix`, where it is that of a socket; else empty.
std::string stem_of(const std::string& name, std::string_view suffix) {
  const bool ends_so = name.size() > suffix.size() && name.ends_with(suffix);
  const std::string stem = ends_so ? name.substr(0, name.size() - suffix.size()) : "";
  return stem.find_first_not_of("0123456789abcdef") == std::string::npos ? stem : "";
}

/// Whoever holds the lock of a socket lives; while we do, nobody binds the socket. A worker whose
/// keeper was killed has only the socket.
void remove_if_dead(const std::string& socket) {
  const Result<UniqueFd> lock = try_lock(socket + ".lock");
  if (!lock) return;
  const Result<UniqueFd> agent = connect_agent(socket);
  if (agent || agent.error().code != Code::kNotFound) return;
  unlink(socket.c_str());
  unlink((socket + ".lock").c_str());
}

}  // namespace

void remove_leftovers(const std::string& folder) {
  std::error_code error;
  size_t tried = 0;
  std::filesystem::directory_iterator at(folder, error);  // whose ++ throws
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const std::string path = at->path().string();
    const std::string name = at->path().filename().string();
    const std::string stem = stem_of(name, ".lock");
    const bool is_waiter = !stem_of(name, agent::kWaiterSuffix).empty();
    const bool is_note = is_old_note(folder, name);
    if (!is_waiter && !is_note && stem.empty()) continue;
    if (++tried > kMaxLeftovers) return;
    if (is_note || (is_waiter && is_deserted(path))) unlink(path.c_str());
    if (!stem.empty()) remove_if_dead(folder + "/" + stem);
  }
}

Result<AgentLink> join_or_listen(const std::string& path) {
  const OwnersRights rights;
  if (Status status = make_runtime_folder(path.substr(0, path.rfind('/'))); !status)
    return status.error();
  bool is_full = false;
  for (int attempt = 0; attempt < kJoinTries; ++attempt) {
    AgentLink link;
    link.socket = path;
    Result<UniqueFd> connection = connect_agent(path);
    if (connection) {
      link.connection = std::move(*connection);
      return link;
    }
    is_full = connection.error().code == Code::kBusy;
    Result<UniqueFd> lock = try_lock(path + ".lock");
    if (lock) {
      Result<UniqueFd> listener = listen_on(path);
      if (!listener) return listener.error();
      link.lock = std::move(*lock);
      link.listener = std::move(*listener);
      return link;
    }
    if (lock.error().code != Code::kBusy) return lock.error();
    pause_one_ms();
  }
  return Error{is_full ? Code::kBusy : Code::kUnavailable,
               "the agent behind " + path + " does not answer"};
}

Status check_descriptor_limit(uint32_t local_rank_count) {
  const rlim_t needed = kAgentDescriptors + kRankDescriptors * std::max(local_rank_count, 1u);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max >= needed) return {};
  return Error{Code::kUnavailable, "the agent needs " + std::to_string(needed) +
                                       " file descriptors, ulimit -Hn is " +
                                       std::to_string(limit.rlim_max)};
}

namespace {

/// The agent reads nothing of a home directory, which may hang.
std::vector<std::string> avoided_programs() {
  std::vector<std::string> programs;
  const auto entries = AvoidList(AvoidList::default_path()).read();
  if (!entries) return programs;
  for (const AvoidedProgram& entry : *entries) {
    const bool is_new =
        std::find(programs.begin(), programs.end(), entry.program) == programs.end();
    if (entry.version == AON_VERSION && is_new && programs.size() < kMaxAvoided)
      programs.push_back(entry.program);
  }
  return programs;
}

/// What all ranks of a launch have in common beside its id, which need not be the only one of its
/// kind: torchrun's is the user's choice, and two clusters may have one home directory.
std::string launch_mark() {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char* name :
       {"OMPI_MCA_orte_hnp_uri", "SLURM_CLUSTER_NAME", "MASTER_ADDR", "MASTER_PORT"}) {
    const char* value = getenv(name);
    for (const char* at = value != nullptr ? value : "-"; *at != '\0'; ++at)
      hash = (hash ^ static_cast<unsigned char>(*at)) * 0x100000001b3u;
    hash = (hash ^ '\n') * 0x100000001b3u;
  }
  char text[17];
  snprintf(text, sizeof(text), "%08x", static_cast<unsigned>(hash ^ hash >> 32));
  return text;
}

/// Of this launch, absolute; "" for none.
std::string rendezvous_folder(const std::string& asked_for, const std::string& launch_id) {
  if (asked_for == "off" || launch_id.empty()) return "";
  std::string folder = asked_for;
  if (folder.empty()) {
    const Result<std::string> home = home_folder();
    if (home) folder = *home + "/.aon/launches";
  }
  std::error_code error;
  if (!folder.empty()) folder = std::filesystem::absolute(folder, error).string();
  if (folder.empty() || error) return "";
  return folder + "/" + launch_id + "-" + launch_mark();
}

}  // namespace

Result<pid_t> spawn_agent(const std::string& agent, AgentLink& link, AgentArguments arguments) {
  // dup2 onto itself would leave close-on-exec set, so keep both above the numbers they get.
  for (UniqueFd* fd : {&link.listener, &link.lock}) {
    const int high = fcntl(fd->get(), F_DUPFD_CLOEXEC, kAgentFirstDescriptor + 2);
    if (high < 0) return system_error("cannot move a descriptor");
    fd->reset(high);
  }
  arguments.listen_fd = kAgentFirstDescriptor;
  arguments.lock_fd = kAgentFirstDescriptor + 1;
  arguments.avoided = avoided_programs();
  arguments.options.rendezvous =
      rendezvous_folder(arguments.options.rendezvous, arguments.launch_id);
  const std::vector<std::string> texts = agent_arguments(arguments);
  std::vector<char*> words{const_cast<char*>("aon-agent")};
  for (const std::string& text : texts) words.push_back(const_cast<char*>(text.c_str()));
  words.push_back(nullptr);
  std::vector<char*> variables = environment_without_preload();
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  prepare_spawn(actions, attributes, link);
  const Spawned spawned = spawn_orphan([&](pid_t* pid) {
    return posix_spawn(pid, agent.c_str(), &actions, &attributes, words.data(), variables.data());
  });
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (spawned.error_number == 0) {
    const std::string folder = link.socket.substr(0, link.socket.rfind('/'));
    remove_leftovers(folder);
    const bool is_noted = note_for_epilog(getenv("SLURM_JOB_ID"), arguments.options.output_dir);
    if (is_noted && folder != notes_folder()) remove_leftovers(notes_folder());
    return spawned.pid;
  }
  unlink(link.socket.c_str());
  return Error{Code::kUnavailable, "cannot start " + agent + ": " + strerror(spawned.error_number)};
}

std::string last_words_of_agent(const std::string& output, pid_t agent) {
  const Result<std::string> log = read_text_file(output + "/agent." + local_host_name() + ".log");
  if (!log) return {};
  const std::string head = "aon-agent[" + std::to_string(agent) + "] error: ";
  const size_t begin = log->rfind(head);
  if (begin == std::string::npos) return {};
  const size_t text = begin + head.size();
  return log->substr(text, log->find('\n', text) - text);
}

Status send_register(int connection, const Registration& registration) {
  agent::Register packet{};
  packet.header = header_of(agent::MessageType::kRegister, sizeof(packet));
  const runtime::RankInfo info =
      runtime::rank_from_environment([](const char* name) -> const char* { return getenv(name); });
  packet.pid = registration.pid;
  packet.expected_local_ranks = registration.expected_local_ranks;
  packet.rank = info.rank;
  packet.world_size = info.world_size;
  registration.program.copy(packet.program, sizeof(packet.program) - 1);
  return send_packet(connection, &packet, sizeof(packet));
}

Status send_wait(int connection) {
  agent::Wait packet{};
  packet.header = header_of(agent::MessageType::kWait, sizeof(packet));
  return send_packet(connection, &packet, sizeof(packet));
}

Status send_exited(int connection, pid_t child, int wait_status) {
  agent::Exited packet{};
  packet.header = header_of(agent::MessageType::kExited, sizeof(packet));
  packet.pid = child;
  packet.wait_status = wait_status;
  return send_packet(connection, &packet, sizeof(packet));
}

}  // namespace aon::launcher
