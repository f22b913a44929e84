#include "core/cluster/handshake.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

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

/// From now on these two fail with EPERM, as under a container's filter of system calls.
bool forbid(uint32_t one, uint32_t other) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, one, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, other, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter = {std::size(program), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// In a process of its own: 0 when two tokens differ.
[[noreturn]] void make_tokens_without(uint32_t one, uint32_t other) {
  alarm(20);
  if (!forbid(one, other)) _exit(2);
  _exit(random_token() != random_token() ? 0 : 1);
}

TEST(Handshake, tokens_differ_where_the_kernels_random_numbers_are_forbidden) {
  EXPECT_EXIT(make_tokens_without(SYS_getrandom, SYS_getrandom), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(make_tokens_without(SYS_getrandom, SYS_openat), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace aon::cluster
