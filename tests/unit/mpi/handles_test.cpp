// plugins/mpi/communicators.h and datatypes.h with an MPI library that is made here: what is asked
// of it and when, and what entries of freed communicators cost.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <vector>

#include "plugins/mpi/communicators.h"
#include "plugins/mpi/datatypes.h"
#include "plugins/mpi/fortran.h"
#include "plugins/mpi/groups.h"
#include "plugins/mpi/library.h"
#include "plugins/mpi/messages.h"
#include "plugins/mpi/requests.h"
#include "plugins/mpi/state.h"

namespace aon {

static std::map<uint32_t, int> g_defined;  ///< by DefinitionType

extern "C" bool aon_define(uint32_t type, const void*, uint32_t, const char*, uint32_t) noexcept {
  ++g_defined[type];
  return true;
}

namespace mpi {

static std::vector<Handle> g_basic_types;

Abi abi;
Queries queries;
bool mpi_is_usable() noexcept { return true; }
void requests_overflow() noexcept {}
void communicator_is_ambiguous() noexcept {}
void learn_fortran_datatype(Handle) noexcept {}
const Backend* library_backend() noexcept {
  static Backend backend{};
  backend.visit_datatypes = [](auto, auto visit) {
    for (const Handle type : g_basic_types) visit(type);
  };
  return &backend;
}
void* find_symbol(const char*) noexcept { return nullptr; }

namespace {

constexpr Handle kWorldHandle = 0x100;
constexpr Handle kSelfHandle = 0x108;
constexpr Handle kDerivedType = 0x900;
constexpr Handle kLargeType = 0x908;
constexpr int64_t kLargeBytes = 5'000'000'000;
Writer g_writer;
int g_question_count;

uint64_t mapped_pages() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages;
}

class Handles : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    abi.handle_mask = ~Handle{0};
    abi.handle_bytes = 8;
    abi.comm_world = kWorldHandle;
    abi.comm_self = kSelfHandle;
    abi.comm_null = 0x110;
    abi.request_shared = 0x10;
    abi.request_shared_size = 1;
    abi.proc_null = -2;
    abi.any_source = -1;
    queries.comm_rank = [](Handle, int* rank) {
      ++g_question_count;
      *rank = 0;
      return kSuccess;
    };
    queries.comm_size = [](Handle, int* size) {
      *size = 1;
      return kSuccess;
    };
    queries.type_size = [](Handle type, int* byte_count) {
      ++g_question_count;
      *byte_count = type == kLargeType ? -32766 : 24;
      return kSuccess;
    };
    queries.type_size_x = [](Handle, int64_t* byte_count) {
      *byte_count = kLargeBytes;
      return kSuccess;
    };
    define_world(0, 1);
  }
  void SetUp() override { g_question_count = 0; }
};

TEST_F(Handles, a_type_of_more_than_an_int_has_its_true_size) {
  EXPECT_EQ(datatype_bytes(kLargeType), static_cast<uint64_t>(kLargeBytes));
  EXPECT_EQ(bytes_of(3, kLargeType), static_cast<uint64_t>(3 * kLargeBytes));
  EXPECT_EQ(bytes_of(2, kDerivedType), 48u);
  const auto size_x = queries.type_size_x;
  queries.type_size_x = nullptr;
  EXPECT_EQ(datatype_bytes(kLargeType), 0u);
  queries.type_size_x = size_x;
}

TEST_F(Handles, basic_types_of_one_slot_are_all_known) {
  constexpr Handle kFirst = 0x2000;
  g_basic_types = {kFirst};
  for (Handle type = kFirst + 8; g_basic_types.size() < 4; type += 8) {
    if (datatype_slot(type) == datatype_slot(kFirst)) g_basic_types.push_back(type);
  }
  learn_datatypes();
  g_question_count = 0;
  for (const Handle type : g_basic_types) {
    EXPECT_TRUE(is_basic(type));
    EXPECT_EQ(datatype_bytes(type), 24u);
  }
  EXPECT_EQ(g_question_count, 0);
  EXPECT_FALSE(is_basic(kDerivedType));
}

TEST_F(Handles, mpi_is_asked_after_it_took_the_call) {
  Envelope sent = outgoing(2, kDerivedType, 0, 7, 0x500);
  EXPECT_EQ(g_question_count, 0);
  EXPECT_EQ(sent.communicator->id, 0u);
  settle(&sent, 2, kDerivedType, 0, 0x500, 1);  // it did not
  EXPECT_EQ(g_question_count, 0);
  settle(&sent, 2, kDerivedType, 0, 0x500, kSuccess);
  EXPECT_EQ(g_question_count, 2);
  EXPECT_NE(sent.communicator->id, 0u);
  EXPECT_EQ(sent.bytes, 48u);
  Envelope asked = incoming(0, 7, 0x500);
  settle(&asked, 0, 0x500, kSuccess);
  EXPECT_EQ(g_question_count, 2) << "it is known now";
  EXPECT_EQ(asked.communicator, sent.communicator);
}

TEST_F(Handles, a_copy_is_known_before_mpi_has_made_it) {
  constexpr Handle kCopy = 0x600;
  const uint32_t before = world.creation_count;
  add_copy(&world, kCopy);
  EXPECT_EQ(g_question_count, 0);
  const Communicator* copy = find_communicator(kCopy);
  EXPECT_NE(copy->id, 0u);
  EXPECT_EQ(copy->local_size, world.local_size);
  EXPECT_EQ(copy->unseen_count, 0u);
  EXPECT_EQ(world.creation_count, before + 1);
  add_copy(&world, abi.comm_null);
  EXPECT_EQ(world.creation_count, before + 2) << "it is counted also where it is not known";
}

TEST_F(Handles, those_of_the_same_members_that_nobody_saw_made_are_counted) {
  const uint64_t before = ambiguous_communicators();
  const Communicator* first = learn_communicator(0x620);
  const Communicator* second = learn_communicator(0x628);
  EXPECT_EQ(first->identity, second->identity);
  EXPECT_EQ(second->unseen_count, first->unseen_count + 1);
  add_communicator(find_communicator(0x620), 0x630);
  add_communicator(find_communicator(0x628), 0x638);
  EXPECT_EQ(find_communicator(0x630)->unseen_count, 1u);
  EXPECT_EQ(find_communicator(0x638)->unseen_count, 2u) << "made from one that may be the other";
  EXPECT_GE(ambiguous_communicators(), before + 2);
}

TEST_F(Handles, those_that_were_seen_made_with_too_many_tags_are_not_said_to_be_unseen) {
  const uint64_t before = ambiguous_communicators();
  EXPECT_FALSE(has_uncounted_communicators());
  for (uint32_t tag = 0; ambiguous_communicators() == before; ++tag) {
    ASSERT_LE(tag, kMaxMemberLists);
    add_communicator_of_members(&world, 0x640, tag, false);
    end_communicator(take_communicator(0x640), kSuccess);
  }
  EXPECT_TRUE(has_uncounted_communicators());
}

/// One entry has 120 bytes: a hundred thousand were 12 MB.
TEST_F(Handles, freed_communicators_are_used_again) {
  const auto make_and_free = [](Handle handle) {
    add_communicator(&world, handle);
    Communicator* c = take_communicator(handle);
    ASSERT_NE(c, nullptr);
    end_communicator(c, kSuccess);
  };
  for (Handle h = 0; h < 10'000; ++h) make_and_free(0x10000 + h * 16);
  const uint64_t before = mapped_pages();
  for (Handle h = 0; h < 100'000; ++h) make_and_free(0x10000 + h * 16);
  EXPECT_LT(mapped_pages() - before, 64u);
}

TEST_F(Handles, a_freed_communicator_stays_while_a_request_has_it) {
  add_communicator(&world, 0x7000);
  Communicator* held = find_communicator(0x7000);
  const uint32_t id = held->id;
  put_request(&g_writer,
              {0x7700, next_request_number(), 0, held, 0, 0, {0}, RequestKind::kReceive, false});
  end_communicator(take_communicator(0x7000), kSuccess);
  for (Handle h = 0; h < 20'000; ++h) {
    add_communicator(&world, 0x10000 + h % 50 * 16);
    end_communicator(take_communicator(0x10000 + h % 50 * 16), kSuccess);
  }
  EXPECT_EQ(held->id, id);
  Request out;
  ASSERT_TRUE(take_request(&g_writer, 0x7700, 0, &out));
  EXPECT_EQ(out.communicator->id, id);
}

/// Communicators with processes of elsewhere. A group is the handle of its communicator, and its
/// members are world ranks, or -1; of an intercommunicator the remote group is the next handle.
class MadeOfWorlds : public Handles {
 protected:
  static inline std::map<Handle, std::vector<int>> members;
  static inline std::map<Handle, bool> is_inter;

  void SetUp() override {
    before_ = queries;
    members = {{kWorldHandle, {0, 1, 2, 3}}};
    queries.comm_size = [](Handle handle, int* size) {
      *size = static_cast<int>(members[handle].size());
      return kSuccess;
    };
    queries.comm_remote_size = [](Handle handle, int* size) {
      *size = static_cast<int>(members[handle + 1].size());
      return kSuccess;
    };
    queries.comm_test_inter = [](Handle handle, int* answer) {
      *answer = is_inter[handle] ? 1 : 0;
      return kSuccess;
    };
    queries.comm_group = [](Handle handle, void* group) { return give(handle, group); };
    queries.comm_remote_group = [](Handle handle, void* group) { return give(handle + 1, group); };
    queries.group_size = [](Handle group, int* size) {
      *size = static_cast<int>(members[group].size());
      return kSuccess;
    };
    queries.group_translate_ranks = [](Handle from, int count, const int* ranks, Handle, int* out) {
      for (int i = 0; i < count; ++i) out[i] = members[from].at(static_cast<size_t>(ranks[i]));
      return kSuccess;
    };
    queries.group_free = [](void*) { return kSuccess; };
  }
  void TearDown() override { queries = before_; }

  static int give(Handle handle, void* group) {
    *static_cast<Handle*>(group) = handle;
    return kSuccess;
  }
  static const Communicator& made(Handle handle, std::vector<int> ranks) {
    members[handle] = std::move(ranks);
    add_communicator_of_members(&world, handle, 0, false);
    return *find_communicator(handle);
  }
  /// As one side sees it.
  static const Communicator& made_inter(Handle handle, std::vector<int> own,
                                        std::vector<int> remote) {
    members[handle + 1] = std::move(remote);
    is_inter[handle] = true;
    return made(handle, std::move(own));
  }

 private:
  Queries before_;
};

TEST_F(MadeOfWorlds, is_told_by_any_member) {
  EXPECT_TRUE(made(0x8000, {0, 1, -1}).is_made_of_worlds);
  EXPECT_FALSE(made(0x8010, {0, 1}).is_made_of_worlds);
  EXPECT_TRUE(made_inter(0x8020, {0}, {1, -1}).is_made_of_worlds);
  members[0x8030] = {0, -1};
  EXPECT_TRUE(learn_communicator(0x8030)->is_made_of_worlds);
}

/// As of one MPI_Comm_split: the processes of one part count it as those of the other do.
TEST_F(MadeOfWorlds, parts_whose_first_is_of_elsewhere_are_told_apart) {
  made(0x8100, {-1, -1, 0, 1, 2, 3});
  Communicator* parent = find_communicator(0x8100);
  std::vector<uint64_t> identities;
  const std::vector<int> parts[] = {{-1, 0, 2}, {-1, 1, 3}, {-1, 0, 2}};
  for (Handle handle = 0x8110; const std::vector<int>& part : parts) {
    parent->creation_count = 5;
    members[handle] = part;
    add_communicator(parent, handle);
    identities.push_back(find_communicator(handle)->identity);
    handle += 0x10;
  }
  EXPECT_NE(identities[0], identities[1]);
  EXPECT_EQ(identities[0], identities[2]);
}

TEST_F(MadeOfWorlds, sides_with_processes_of_ours_have_one_order) {
  const Communicator& left = made_inter(0x8200, {-1, 0}, {-1, 1});
  const Communicator& right = made_inter(0x8210, {-1, 1}, {-1, 0});
  EXPECT_NE(left.own_offset, right.own_offset);
  EXPECT_EQ(left.own_offset, right.peer_offset);
  // Nobody of ours is on the other side: ours is the first.
  EXPECT_EQ(made_inter(0x8220, {0, 1}, {-1, -1, -1}).own_offset, 0);
}

}  // namespace
}  // namespace mpi
}  // namespace aon
