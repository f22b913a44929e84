#include "core/cluster/handshake.h"

#include <gtest/gtest.h>

namespace aon::cluster {
namespace {

TEST(Handshake, proof_depends_on_everything_it_covers) {
  const Token token = random_token();
  const Nonce parent = random_nonce();
  const Nonce child = random_nonce();
  const Proof proof = child_proof(token, parent, child, "n1");
  EXPECT_TRUE(is_equal(proof, child_proof(token, parent, child, "n1")));
  EXPECT_FALSE(is_equal(proof, child_proof(token, parent, child, "n2")));
  EXPECT_FALSE(is_equal(proof, child_proof(token, child, parent, "n1")));
  EXPECT_FALSE(is_equal(proof, child_proof(random_token(), parent, child, "n1")));
  EXPECT_FALSE(is_equal(proof, parent_proof(token, child, parent)));
}

TEST(Handshake, proof_is_hmac_sha256) {
  // python3: hmac.new(bytes(32), b"parent" + bytes([1] * 32) + bytes([2] * 32), "sha256")
  Token token{};
  Nonce one;
  Nonce two;
  one.fill(1);
  two.fill(2);
  const Proof proof = parent_proof(token, one, two);
  EXPECT_EQ(proof[0], 0xc0);
  EXPECT_EQ(proof[31], 0x73);
}

TEST(Handshake, nonces_and_tokens_differ) {
  EXPECT_NE(random_nonce(), random_nonce());
  EXPECT_NE(random_token(), random_token());
}

}  // namespace
}  // namespace aon::cluster
