/// Messages between a process and the agent of its node: one SOCK_SEQPACKET unix connection per
/// process, kept open until the process ends (its hang-up is the death signal). The socket's path
/// is in AON_SOCKET, set by aon-run; its folder is 0700.
///
///     process                              agent
///     checks SO_PEERCRED (uid)
///     Hello  ----------------------------> checks SO_PEERCRED (uid, pid), makes and seals the ring
///            <---------------------------- Welcome + descriptors of ring and bell (SCM_RIGHTS)
///     checks the seals, maps both, closes the descriptors
///            ...                           drains
///     (end of process: hang-up) ---------> drains the rest, writes the exit
///
///     aon-run                              agent
///     Register(pid of the rank) ---------> watches it with a pidfd; the launch is over when no
///                                          registered pid and no connection is left
///     Wait (only the one that stays) ----> ... <-- Done when the files are complete
///     Exited (before it reaps its child) > the child's exit status, taken once, and only from the
///                                          parent of the pid that its connection registered
///
///     doorman (launcher/doorman.h)         agent
///     Register(pid of the rank) ---------> as above
///     HandOver + a program's connection -> goes on as if the program had connected to it; the
///                                          Hello still waits there, its peer is checked as ever
///
/// A Hello may name the call that it comes from (MPI_Init): until the process has mapped its ring,
/// the agent shows that call in it as open, for it may not return.
///
/// Where MPI calls are not wanted, a registered pid says no Hello: the agent takes it as a process
/// all the same, so that node providers follow it and the ledger has it.
///
/// A connection that says Register or Wait is no process: only the registered pid counts, and its
/// hang-up means nothing. Wait may follow Register at once. The agent gets the bound, listening
/// socket and the held lock (its path with .lock) as descriptors (core/base/options.h). When it
/// takes no more ranks it removes both files, then closes the listener, then the lock. From its
/// start until its files are complete it holds the lease DIR/agents/NODE.lease
/// (core/base/lease.h), which is how `aon finalize` knows a live job.
///
/// Every message is one packet of at most kMaxMessageBytes; a short, long or unknown one closes
/// the connection. Layout only; C-compatible types; depends on nothing.
#pragma once

#include <cstdint>
#include <string_view>

namespace aon::agent {

constexpr uint32_t kProtocolMagic = 0x414f4e31;  ///< "1NOA"
constexpr uint32_t kProtocolVersion = 2;
constexpr uint32_t kMaxMessageBytes = 1024;
/// Of the whole exchange, once per process, unless AON_ATTACH_MS says otherwise.
constexpr int kAttachTimeoutMs = 20;
constexpr int kMaxAttachTimeoutMs = 60'000;

enum class MessageType : uint32_t {
  kHello = 1,
  kWelcome = 2,
  kRegister = 3,
  kWait = 4,
  kDone = 5,
  kRefused = 6,
  kHandOver = 7,
  kLeftAlone = 8,  ///< to Hello: this program is not to be recorded, not in a file either
  kExited = 9
};

struct MessageHeader {
  uint32_t magic;
  uint32_t version;
  MessageType type;
  uint32_t bytes;  ///< of the whole message
};

/// A call that begins: `ticks` of both clocks, since the agent says which one counts.
struct BegunCall {
  uint64_t tsc;
  uint64_t raw_ns;
  uint32_t region;
  uint8_t role;      ///< RegionRole
  uint8_t paradigm;  ///< Paradigm
  uint16_t reserved;
  char name[48];  ///< empty: none
};

/// MPI_Init, MPI_Init_thread, or what a program with sessions has in their stead.
inline bool is_mpi_init(const BegunCall& call) noexcept {
  const std::string_view name(call.name, sizeof(call.name));
  return name.starts_with("MPI_Init") || name.starts_with("MPI_Session_init");
}

struct Hello {
  MessageHeader header;
  int32_t pid;
  int32_t rank;         ///< from the environment, -1 none
  uint32_t world_size;  ///< 0 unknown
  uint32_t clock_is_tsc;
  uint64_t start_time_ticks;  ///< field 22 of /proc/self/stat
  char program[256];          ///< /proc/self/exe, cut
  BegunCall begun;
};
struct Welcome {
  MessageHeader header;
  uint32_t process;
  uint32_t slot_count;
  uint32_t chunk_count;
  uint32_t reserved;
  uint64_t total_bytes;  ///< of the ring behind the descriptor
};
struct Register {
  MessageHeader header;
  int32_t pid;
  uint32_t expected_local_ranks;  ///< 0 unknown
  int32_t rank;                   ///< from the environment, -1 none
  uint32_t world_size;            ///< 0 unknown
  char program[256];              ///< that the pid becomes, cut
};
struct Wait {
  MessageHeader header;
};
/// How a child has ended, which kernels before 6.15 tell only to its parent.
struct Exited {
  MessageHeader header;
  int32_t pid;
  int32_t wait_status;  ///< as waitpid() gives it
};
struct HandOver {
  MessageHeader header;
};

/// Under hydra ranks say to the process that waits for the files (launcher/waiter.h), on a datagram
/// socket of the agent's path and this suffix, whether it may hold standard error.
constexpr char kWaiterSuffix[] = ".waiter";
constexpr char kStderrVariable[] = "AON_STDERR";  ///< "DEVICE:INODE" of what aon-run has there
enum class WaiterNotice : uint8_t {
  kTakenBack = 1,  ///< let go of it
  kLent = 2        ///< with a descriptor: hold this
};
constexpr uint32_t kDoneReport = 1;     ///< of Done: the archive is written
constexpr uint32_t kDoneElsewhere = 2;  ///< and the aon-run of another node tells the user
struct Done {
  MessageHeader header;
  uint32_t complete;  ///< 0: the agent gave up, text says why
  char text[512];
};

}  // namespace aon::agent
