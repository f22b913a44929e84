#include "core/cluster/handshake.h"

#include <nettle/hmac.h>
#include <nettle/memops.h>

#include <cstring>

#include "core/cluster/wire.h"

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

bool shake_hands(int fd, const Token& token, std::string_view node, int64_t deadline_ms) {
  FrameBuffer frame;
  if (!receive_frame(fd, deadline_ms, &frame) || frame.type() != FrameType::kChallenge)
    return false;
  const auto challenge = frame.take<Challenge>();
  auto answer = make_frame<Answer>();
  answer.nonce = random_nonce();
  const std::string_view name = node.substr(0, kMaxNodeName);
  name.copy(answer.node, name.size());
  answer.proof = child_proof(token, challenge.nonce, answer.nonce, name);
  if (!send_frame(fd, answer)) return false;
  if (!receive_frame(fd, deadline_ms, &frame) || frame.type() != FrameType::kWelcome) return false;
  return is_equal(frame.take<Welcome>().proof, parent_proof(token, answer.nonce, challenge.nonce));
}

std::optional<Nonce> send_challenge(int fd) {
  auto frame = make_frame<Challenge>();
  frame.nonce = random_nonce();
  if (!send_frame(fd, frame)) return std::nullopt;
  return frame.nonce;
}

std::optional<std::string> welcome_child(int fd, const Token& token, const Nonce& nonce,
                                         const Answer& answer) {
  const std::string node(answer.node, strnlen(answer.node, sizeof(answer.node)));
  if (!is_equal(answer.proof, child_proof(token, nonce, answer.nonce, node))) return std::nullopt;
  auto frame = make_frame<Welcome>();
  frame.proof = parent_proof(token, answer.nonce, nonce);
  if (!send_frame(fd, frame)) return std::nullopt;
  return node;
}

}  // namespace aon::cluster
