#include "core/cluster/handshake.h"

#include <nettle/hmac.h>
#include <nettle/memops.h>

namespace aon::cluster {
namespace {

/// HMAC-SHA256 of some pieces, one behind the other.
class Hmac {
 public:
  explicit Hmac(const Token& token) { hmac_sha256_set_key(&context_, token.size(), token.data()); }
  template <class T>
  Hmac& add(const T& bytes) {
    hmac_sha256_update(&context_, bytes.size(), reinterpret_cast<const uint8_t*>(bytes.data()));
    return *this;
  }
  Proof digest() {
    Proof proof{};
    hmac_sha256_digest(&context_, proof.size(), proof.data());
    return proof;
  }

 private:
  hmac_sha256_ctx context_;
};

}  // namespace

Nonce random_nonce() { return random_token(); }

Proof child_proof(const Token& token, const Nonce& parent, const Nonce& child,
                  std::string_view node) {
  return Hmac(token).add(std::string_view("child")).add(parent).add(child).add(node).digest();
}

Proof parent_proof(const Token& token, const Nonce& child, const Nonce& parent) {
  return Hmac(token).add(std::string_view("parent")).add(child).add(parent).digest();
}

bool is_equal(const Proof& a, const Proof& b) {
  return memeql_sec(a.data(), b.data(), a.size()) != 0;
}

}  // namespace aon::cluster
