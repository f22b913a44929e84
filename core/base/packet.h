/// Packets with descriptors over a Unix socket (SCM_RIGHTS).
/// Thread: any.   Signal: never.   Errors: false or -1, errno set.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/unique_fd.h"

namespace aon {

constexpr size_t kMaxPacketDescriptors = 8;

/// Sends `bytes` and duplicates of `descriptors` as one packet. Waits for room unless `flags` has
/// MSG_DONTWAIT; never raises SIGPIPE.
bool send_packet(int socket, std::span<const uint8_t> bytes, std::span<const int> descriptors,
                 int flags = 0);

/// Receives one packet; descriptors are close-on-exec. Returns its bytes, 0 at the end of the
/// connection, -1 with errno; a packet that was cut is -1 with EMSGSIZE.
ssize_t receive_packet(int socket, std::span<uint8_t> bytes, std::vector<UniqueFd>* descriptors,
                       int flags);

template <class T>
bool send_struct(int socket, const T& value, std::span<const int> descriptors = {}, int flags = 0) {
  return send_packet(socket, {reinterpret_cast<const uint8_t*>(&value), sizeof(T)}, descriptors,
                     flags);
}

}  // namespace aon
