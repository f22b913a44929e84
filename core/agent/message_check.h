/// The check that every message of another process passes before the agent looks at it: one packet
/// is one whole message of a known type, no byte more or less. Texts in it are still untrusted and
/// may lack their NUL.   Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/agent/protocol.h"

namespace aon::agent {

/// True when `byte_count` bytes are one message of this protocol, by its header.
inline bool is_whole(const MessageHeader& header, size_t byte_count) {
  return header.magic == kProtocolMagic && header.version == kProtocolVersion &&
         header.bytes == byte_count;
}

/// Reads a message whose header has been checked. False when it has not the size of a T.
template <class T>
bool read_message(const uint8_t* bytes, size_t byte_count, T* message) {
  if (byte_count != sizeof(T)) return false;
  std::memcpy(message, bytes, sizeof(T));
  return true;
}

/// Type of the message in `bytes`, or 0 when it is none or has not the size of its type.
inline uint32_t checked_message_type(const uint8_t* bytes, size_t byte_count) {
  MessageHeader header{};
  if (byte_count < sizeof(header)) return 0;
  std::memcpy(&header, bytes, sizeof(header));
  if (!is_whole(header, byte_count)) return 0;
  size_t expected_bytes = 0;
  switch (header.type) {
    case MessageType::kHello:
      expected_bytes = sizeof(Hello);
      break;
    case MessageType::kRegister:
      expected_bytes = sizeof(Register);
      break;
    case MessageType::kWait:
      expected_bytes = sizeof(Wait);
      break;
    case MessageType::kExited:
      expected_bytes = sizeof(Exited);
      break;
    case MessageType::kHandOver:
      expected_bytes = sizeof(HandOver);
      break;
    default:  // what the agent sends, or nothing we know
      return 0;
  }
  return byte_count == expected_bytes ? static_cast<uint32_t>(header.type) : 0;
}

}  // namespace aon::agent
