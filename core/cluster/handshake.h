/// Two agents prove to each other that they know the parent's token, without sending it:
///
///     child's proof  = HMAC-SHA256(token, "child"  | parent's nonce | child's nonce | its node)
///     parent's proof = HMAC-SHA256(token, "parent" | child's nonce | parent's nonce)
///
/// HMAC as in RFC 2104, from nettle. What follows is not encrypted: times, and where nodes share no
/// directory their spools.   Thread: any.   Cost: some microseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/cluster/address.h"
#include "core/cluster/frames.h"

namespace aon::cluster {

Nonce random_nonce();
Proof child_proof(const Token& token, const Nonce& parent, const Nonce& child,
                  std::string_view node);
Proof parent_proof(const Token& token, const Nonce& child, const Nonce& parent);
/// Compares in the same time wherever they differ.
bool is_equal(const Proof& a, const Proof& b);

/// The child's part, on a blocking descriptor: both have proved to know `token`, or false.
bool shake_hands(int fd, const Token& token, std::string_view node, int64_t deadline_ms);

/// The parent's part: sends a challenge and returns its nonce; nullopt: the connection is lost.
std::optional<Nonce> send_challenge(int fd);
/// Checks the answer to `nonce` and welcomes the child. Its name, or nullopt: it does not know the
/// token.
std::optional<std::string> welcome_child(int fd, const Token& token, const Nonce& nonce,
                                         const Answer& answer);

}  // namespace aon::cluster
