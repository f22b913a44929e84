/// One packet to the agent's socket: only whole messages of a known type pass.
#include <cstring>

#include "core/agent/message_check.h"
#include "tests/fuzz/target.h"

namespace aon::fuzz {
namespace {

template <class T>
Bytes message_of(agent::MessageType type) {
  T message{};
  message.header = {agent::kProtocolMagic, agent::kProtocolVersion, type, sizeof(T)};
  Bytes bytes(sizeof(T));
  std::memcpy(bytes.data(), &message, sizeof(T));
  return bytes;
}

template <class T>
void check_message(const uint8_t* data, size_t bytes) {
  T message{};
  check(agent::read_message(data, bytes, &message));
  check(bytes <= agent::kMaxMessageBytes && message.header.bytes == bytes);
  check(message.header.magic == agent::kProtocolMagic);
  check(message.header.version == agent::kProtocolVersion);
}

}  // namespace

std::vector<Bytes> seeds() {
  return {message_of<agent::Hello>(agent::MessageType::kHello),
          message_of<agent::Register>(agent::MessageType::kRegister),
          message_of<agent::Wait>(agent::MessageType::kWait),
          message_of<agent::Exited>(agent::MessageType::kExited),
          message_of<agent::HandOver>(agent::MessageType::kHandOver),
          message_of<agent::Done>(agent::MessageType::kDone)};
}

}  // namespace aon::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  using namespace aon;
  switch (static_cast<agent::MessageType>(agent::checked_message_type(data, bytes))) {
    case agent::MessageType::kHello:
      fuzz::check_message<agent::Hello>(data, bytes);
      break;
    case agent::MessageType::kRegister:
      fuzz::check_message<agent::Register>(data, bytes);
      break;
    case agent::MessageType::kWait:
      fuzz::check_message<agent::Wait>(data, bytes);
      break;
    case agent::MessageType::kExited:
      fuzz::check_message<agent::Exited>(data, bytes);
      break;
    case agent::MessageType::kHandOver:
      fuzz::check_message<agent::HandOver>(data, bytes);
      break;
    default:
      fuzz::check(agent::checked_message_type(data, bytes) == 0);
  }
  return 0;
}
