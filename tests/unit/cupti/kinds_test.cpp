#include "plugins/cupti/kinds.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace aon::cupti {
namespace {

/// What a CUPTI was told, and what it refuses.
struct Told {
  std::set<Kind> kinds;
  std::set<Kind> refused_kinds;
  std::set<std::pair<int32_t, uint32_t>> calls;
  std::set<std::pair<int32_t, uint32_t>> unknown_calls;
  std::set<std::pair<int32_t, uint32_t>> refused_calls;
};
Told g_told;

Code set_call(int32_t domain, uint32_t function, uint8_t enable) {
  if (g_told.unknown_calls.count({domain, function}) != 0) ADD_FAILURE() << function;
  if (g_told.refused_calls.count({domain, function}) != 0) return 999;
  if (enable != 0) {
    g_told.calls.insert({domain, function});
  } else {
    g_told.calls.erase({domain, function});
  }
  return kSuccess;
}

Backend backend() {
  Backend b = {};
  b.enable = [](const Client&, Kind kind) {
    if (g_told.refused_kinds.count(kind) != 0) return Code{999};
    g_told.kinds.insert(kind);
    return kSuccess;
  };
  b.disable = [](const Client&, Kind kind) {
    g_told.kinds.erase(kind);
    return kSuccess;
  };
  b.set_driver_call = kBackendV1.set_driver_call;
  b.set_runtime_call = kBackendV1.set_runtime_call;
  return b;
}

Client client() {
  static const Backend kBackend = backend();
  Client c = {};
  c.backend = &kBackend;
  c.cupti.enable_driver_call = [](uint32_t id, uint8_t on) {
    return set_call(kDriverDomain, id, on);
  };
  c.cupti.enable_runtime_call = [](uint32_t id, uint8_t on) {
    return set_call(kRuntimeDomain, id, on);
  };
  c.cupti.get_callback_name = [](int32_t domain, uint32_t id, const char** name) {
    *name = "name";
    return g_told.unknown_calls.count({domain, id}) != 0 ? Code{1} : kSuccess;
  };
  return c;
}

class Kinds : public testing::Test {
 protected:
  Kinds() { g_told = {}; }
  Code enable(const Client& client, bool has_calls = true) {
    missing_ = {};
    return enable_kinds(client, has_calls, &missing_);
  }
  MissingKinds missing_ = {};
};

TEST_F(Kinds, have_the_launches_of_cuda_13_and_those_of_streams_per_thread) {
  ASSERT_EQ(enable(client()), kSuccess);
  EXPECT_STREQ(missing_.text, "");
  for (const uint32_t launch : {211u, 214u, 505u, 506u, 430u, 431u, 270u, 312u, 225u, 235u, 239u}) {
    EXPECT_EQ(g_told.calls.count({kRuntimeDomain, launch}), 1u) << launch;
  }
  for (const uint32_t launch : {307u, 442u, 652u, 653u, 478u, 515u, 418u, 421u, 428u, 440u}) {
    EXPECT_EQ(g_told.calls.count({kDriverDomain, launch}), 1u) << launch;
  }
}

TEST_F(Kinds, have_the_begins_and_ends_of_captures) {
  ASSERT_EQ(enable(client()), kSuccess);
  for (const uint32_t call : {495u, 496u, 497u, 498u, 539u, 540u, 720u, 721u})
    EXPECT_EQ(g_told.calls.count({kDriverDomain, call}), 1u) << call;
  for (const uint32_t call : {315u, 316u, 319u, 320u, 452u, 453u})
    EXPECT_EQ(g_told.calls.count({kRuntimeDomain, call}), 1u) << call;
}

TEST_F(Kinds, have_waits_of_cuda_13_and_copies_of_every_shape) {
  ASSERT_EQ(enable(client()), kSuccess);
  // cuCtxSynchronize_v2, cuMemcpyDtoD, cuMemcpy2DAsync, cuMemcpyPeerAsync, cuMemcpyBatchAsync,
  // cuMemsetD8.
  for (const uint32_t call : {800u, 280u, 289u, 319u, 776u, 249u}) {
    EXPECT_EQ(g_told.calls.count({kDriverDomain, call}), 1u) << call;
  }
  // cudaMemcpyPeerAsync, cudaMemcpy2DAsync, cudaMemcpyBatchAsync, cudaMemset_ptds.
  for (const uint32_t call : {161u, 44u, 509u, 233u}) {
    EXPECT_EQ(g_told.calls.count({kRuntimeDomain, call}), 1u) << call;
  }
}

TEST_F(Kinds, a_function_that_the_version_does_not_have_is_not_missing) {
  g_told.unknown_calls = {{kRuntimeDomain, 505}, {kRuntimeDomain, 506}};
  ASSERT_EQ(enable(client()), kSuccess);
  EXPECT_STREQ(missing_.text, "");
}

TEST_F(Kinds, calls_that_cannot_be_switched_on_are_told) {
  g_told.refused_calls = {{kRuntimeDomain, 505}, {kDriverDomain, 307}};
  ASSERT_EQ(enable(client()), kSuccess);
  EXPECT_STREQ(missing_.text, "calls of CUDA (2 functions)");
}

TEST_F(Kinds, a_version_that_cannot_choose_calls_is_told) {
  Client old = client();
  old.cupti.enable_runtime_call = nullptr;
  old.cupti.enable_driver_call = nullptr;
  ASSERT_EQ(enable(old), kSuccess);
  EXPECT_STREQ(missing_.text, "calls of CUDA");
  EXPECT_EQ(enable(old, false), kSuccess);
  EXPECT_STREQ(missing_.text, "");
}

TEST_F(Kinds, all_is_off_again_at_the_end) {
  ASSERT_EQ(enable(client()), kSuccess);
  EXPECT_EQ(g_told.kinds.size(), 7u);
  disable_kinds(client(), true);
  EXPECT_TRUE(g_told.kinds.empty());
  EXPECT_TRUE(g_told.calls.empty());
}

TEST_F(Kinds, what_is_missing_is_asked_for_once) {
  static int asked;
  asked = 0;
  Client counting = client();
  counting.cupti.get_callback_name = [](int32_t, uint32_t, const char**) {
    ++asked;
    return kSuccess;
  };
  ASSERT_EQ(enable(counting), kSuccess);
  const int first = asked;
  EXPECT_GT(first, 100);
  disable_kinds(counting, true);
  g_told.refused_kinds = {Kind::kMemset};
  ASSERT_EQ(enable_kinds(counting, true, nullptr), kSuccess);
  EXPECT_EQ(asked, first);
  EXPECT_EQ(g_told.calls.count({kDriverDomain, 307}), 1u);
}

TEST_F(Kinds, graphs_as_one_are_switched_apart) {
  enable_graphs(client(), &missing_);
  ASSERT_EQ(enable(client()), kSuccess);
  disable_kinds(client(), true);
  EXPECT_EQ(g_told.kinds, std::set<Kind>{Kind::kGraphTrace});
  disable_graphs(client());
  EXPECT_TRUE(g_told.kinds.empty());
  g_told.refused_kinds = {Kind::kGraphTrace};
  enable_graphs(client(), &missing_);
  EXPECT_STREQ(missing_.text, "graphs");
}

TEST_F(Kinds, external_ids_are_asked_for_with_the_calls_that_have_them) {
  ASSERT_EQ(enable(client(), false), kSuccess);
  EXPECT_EQ(g_told.kinds.count(Kind::kExternalCorrelation), 0u);
  disable_kinds(client(), false);
  ASSERT_EQ(enable(client()), kSuccess);
  EXPECT_EQ(g_told.kinds.count(Kind::kExternalCorrelation), 1u);
  disable_kinds(client(), true);
  g_told.refused_kinds = {Kind::kExternalCorrelation};
  ASSERT_EQ(enable(client()), kSuccess);
  EXPECT_STREQ(missing_.text, "external correlation ids");
}

TEST_F(Kinds, without_kernels_there_is_nothing) {
  g_told.refused_kinds = {Kind::kConcurrentKernel};
  EXPECT_EQ(enable(client()), 999);
}

}  // namespace
}  // namespace aon::cupti
