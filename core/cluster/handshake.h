/// Two agents prove to each other that they know the parent's token, without sending it:
///
///     child's proof  = HMAC-SHA256(token, "child"  | parent's nonce | child's nonce | its node)
///     parent's proof = HMAC-SHA256(token, "parent" | child's nonce | parent's nonce)
///
/// HMAC as in RFC 2104, from nettle. What follows is not encrypted: it holds times, no data of the
/// job.   Thread: any.   Cost: some microseconds.
#pragma once

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

}  // namespace aon::cluster
