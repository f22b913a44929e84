/// What two agents say to each other over TCP: frames of fixed size, by type. Little-endian, as all
/// machines of a job are.
///
///     child (connects)                          parent (listens)
///            <---------------------------- Challenge(nonce of the parent)
///     Answer(nonce, proof, node) ---------> checks the proof
///            <---------------------------- Welcome(proof): checked by the child
///     Ping ------------------------------->
///            <---------------------------- Pong(received, sent)     a burst of them, any time
///            <---------------------------- Leaving: its ranks have ended
///     Bye --------------------------------> after a last burst
///
/// Everything received is untrusted: magic, version, type and size are checked.
/// Thread: values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace aon::cluster {

constexpr uint32_t kFrameMagic = 0x314e4f41;  ///< "AON1"
constexpr uint16_t kFrameVersion = 3;
constexpr size_t kMaxNodeName = 256;

using Nonce = std::array<uint8_t, 32>;
using Proof = std::array<uint8_t, 32>;

enum class FrameType : uint16_t {
  kNone = 0,
  kChallenge,
  kAnswer,
  kWelcome,
  kPing,
  kPong,
  kLeaving,
  kBye,
  // Of a courier and its receiver (core/delivery).
  kOffer,
  kPart,
  kGone,
  kBeat,
  kComplete,
  kAssembled,
  kRefused,
  kAssembling,
};

struct FrameHeader {
  uint32_t magic;
  uint16_t version;
  FrameType type;
  uint32_t bytes;  ///< of the whole frame
  uint32_t reserved;
};

struct Challenge {
  static constexpr FrameType kType = FrameType::kChallenge;
  FrameHeader header;
  Nonce nonce;
};
struct Answer {
  static constexpr FrameType kType = FrameType::kAnswer;
  FrameHeader header;
  Nonce nonce;
  Proof proof;
  char node[kMaxNodeName];  ///< of the child
};
struct Welcome {
  static constexpr FrameType kType = FrameType::kWelcome;
  FrameHeader header;
  Proof proof;
};
struct Ping {
  static constexpr FrameType kType = FrameType::kPing;
  FrameHeader header;
  uint64_t number;
};
struct Pong {
  static constexpr FrameType kType = FrameType::kPong;
  FrameHeader header;
  uint64_t number;
  uint64_t received_ticks;  ///< of the parent
  uint64_t sent_ticks;
  uint64_t held_ns;       ///< between both
  uint64_t waited_ticks;  ///< before it was received; 0: not known (arrival.h)
};
struct Leaving {
  static constexpr FrameType kType = FrameType::kLeaving;
  FrameHeader header;
};
struct Bye {
  static constexpr FrameType kType = FrameType::kBye;
  FrameHeader header;
};

constexpr size_t kMaxPartName = 64;
constexpr size_t kMaxPlace = 256;

struct Offer {
  static constexpr FrameType kType = FrameType::kOffer;
  FrameHeader header;
  int32_t pid;  ///< of the agent
  uint32_t rank_count;
  uint64_t start_time_ticks;  ///< of the agent
  uint32_t world_size;        ///< of the launch; 0 unknown
  uint32_t spool;             ///< tells the sender's folder from others; 0 unknown
};
enum class PartMode : uint32_t {
  kWhole = 1,   ///< from offset 0 on; takes the place of an older file when it is complete
  kAppend = 2,  ///< behind what is there
};
/// `byte_count` bytes of a file follow.
struct Part {
  static constexpr FrameType kType = FrameType::kPart;
  FrameHeader header;
  char name[kMaxPartName];
  PartMode mode;
  uint32_t byte_count;
  uint64_t offset;
  uint64_t total_bytes;  ///< of the file, as far as it is sent
};
struct Gone {
  static constexpr FrameType kType = FrameType::kGone;
  FrameHeader header;
  char name[kMaxPartName];
};
struct Beat {
  static constexpr FrameType kType = FrameType::kBeat;
  FrameHeader header;
};
struct Complete {
  static constexpr FrameType kType = FrameType::kComplete;
  FrameHeader header;
};
struct Assembled {
  static constexpr FrameType kType = FrameType::kAssembled;
  FrameHeader header;
  char place[kMaxPlace];  ///< HOST:DIR of the archive, as far as it fits
};

enum class Again : uint32_t {
  kNever = 0,
  kSoon = 1,      ///< it may pass: a shortage, another agent of the node
  kWhenDone = 2,  ///< where its ranks have ended, so may others have, and made room
};
struct Refused {
  static constexpr FrameType kType = FrameType::kRefused;
  FrameHeader header;
  char reason[kMaxPlace];
  Again again;
};
/// Somebody makes the archive now: said every kLeaseBeatSeconds to whose spool is here.
struct Assembling {
  static constexpr FrameType kType = FrameType::kAssembling;
  FrameHeader header;
};

constexpr size_t kMaxFrameBytes = sizeof(Answer);

template <class T>
T make_frame() {
  T frame{};
  frame.header = {kFrameMagic, kFrameVersion, T::kType, sizeof(T), 0};
  return frame;
}

/// Bytes of a frame of `type`; 0 for a type that is none.
constexpr size_t frame_bytes(FrameType type) {
  switch (type) {
    case FrameType::kChallenge:
      return sizeof(Challenge);
    case FrameType::kAnswer:
      return sizeof(Answer);
    case FrameType::kWelcome:
      return sizeof(Welcome);
    case FrameType::kPing:
      return sizeof(Ping);
    case FrameType::kPong:
      return sizeof(Pong);
    case FrameType::kLeaving:
      return sizeof(Leaving);
    case FrameType::kBye:
      return sizeof(Bye);
    case FrameType::kOffer:
      return sizeof(Offer);
    case FrameType::kPart:
      return sizeof(Part);
    case FrameType::kGone:
      return sizeof(Gone);
    case FrameType::kBeat:
      return sizeof(Beat);
    case FrameType::kComplete:
      return sizeof(Complete);
    case FrameType::kAssembled:
      return sizeof(Assembled);
    case FrameType::kRefused:
      return sizeof(Refused);
    case FrameType::kAssembling:
      return sizeof(Assembling);
    case FrameType::kNone:
      break;
  }
  return 0;
}

/// Collects one frame from a stream of bytes.
class FrameBuffer {
 public:
  /// Where the next bytes go, and how many are wanted: the header first, then the rest.
  uint8_t* space() { return bytes_ + filled_; }
  size_t wanted() const {
    return filled_ < sizeof(FrameHeader) ? sizeof(FrameHeader) - filled_
                                         : frame_bytes(header().type) - filled_;
  }
  /// `byte_count` bytes have been put there. False: this is no frame of ours.
  bool add(size_t byte_count) {
    filled_ += byte_count;
    if (filled_ < sizeof(FrameHeader)) return true;
    const FrameHeader& h = header();
    const size_t expected_bytes = frame_bytes(h.type);
    const bool is_ours = h.magic == kFrameMagic && h.version == kFrameVersion;
    return is_ours && expected_bytes != 0 && h.bytes == expected_bytes;
  }
  bool is_complete() const { return filled_ >= sizeof(FrameHeader) && wanted() == 0; }
  FrameType type() const { return header().type; }
  /// The complete frame, which is of T's type.
  template <class T>
  T take() {
    T frame;
    std::memcpy(&frame, bytes_, sizeof(T));
    filled_ = 0;
    return frame;
  }

 private:
  const FrameHeader& header() const { return *reinterpret_cast<const FrameHeader*>(bytes_); }

  alignas(8) uint8_t bytes_[kMaxFrameBytes] = {};
  size_t filled_ = 0;
};

}  // namespace aon::cluster
