// Communicators of the model: what each member told, joined.

#include <aon/mpi.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string.h>

#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/model.h"

namespace aon::writers {
namespace {

using test::NodeSpool;
using test::TemporaryFolder;

const std::vector<std::pair<std::string, RegionRole>> kRegions = {
    {"MPI_Send", RegionRole::kPointToPoint}};

const std::vector<Record> kOneSpan = {test::span_record(1, 10, 20)};

TEST(Communicators, members_of_communicators_are_joined_by_identity) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  for (uint32_t rank = 0; rank < 4; ++rank) {
    node.add_process(rank, static_cast<int32_t>(rank), 4, kRegions);
    CommunicatorDefinition half{};
    half.identity = 1000 + rank % 2;
    half.id = 7 + rank;  // local ids differ
    half.size = 2;
    half.rank = rank / 2;
    half.kind = CommunicatorKind::kIntra;
    node.define(rank, DefinitionType::kCommunicator, half, {""});
    node.add_records(rank, 1, kOneSpan);
  }
  node.finish();
  const auto parts = build_model(job.path(), kDefaultOtf2Locations);
  ASSERT_TRUE(parts.has_value());
  const Model& model = (*parts)->model;
  ASSERT_EQ(model.communicators.size(), 4u);
  EXPECT_EQ(model.communicators[0].name, "MPI_COMM_WORLD");
  EXPECT_THAT(model.communicators[0].members, testing::ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(model.communicators[2].members, testing::ElementsAre(0, 2));
  EXPECT_THAT(model.communicators[3].members, testing::ElementsAre(1, 3));
  EXPECT_EQ(model.groups[3].communicator_map.at(10), 3u);
  EXPECT_EQ(model.communicators[3].parent, 0u);
}

/// Ranks 0 to 2: one group of one, and one of two.
TEST(Communicators, inter_communicators_tell_their_groups) {
  for (const uint32_t told : {1u, 0u, 3u}) {
    TemporaryFolder job;
    NodeSpool node(job.path(), "n1");
    for (uint32_t rank = 0; rank < 3; ++rank) {
      node.add_process(rank, static_cast<int32_t>(rank), 3, kRegions);
      CommunicatorDefinition inter{};
      inter.identity = 1000;
      inter.id = 7;
      inter.size = 3;
      inter.rank = rank;
      inter.kind = CommunicatorKind::kInter;
      memcpy(&inter.reserved[kFirstGroupByte], &told, sizeof told);
      node.define(rank, DefinitionType::kCommunicator, inter, {""});
      node.add_records(rank, 1, kOneSpan);
    }
    node.finish();
    const auto parts = build_model(job.path(), kDefaultOtf2Locations);
    ASSERT_TRUE(parts.has_value());
    const GlobalCommunicator& inter = (*parts)->model.communicators.back();
    EXPECT_EQ(inter.kind, CommunicatorKind::kInter);
    EXPECT_EQ(inter.first_group_count, told == 1 ? 1u : 0u) << told;
  }
}

/// Three processes that have spawned others; who is where among those is not told to this job.
TEST(Communicators, communicators_of_several_worlds_have_the_members_of_this_job) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  for (uint32_t rank = 0; rank < 3; ++rank) {
    node.add_process(rank, static_cast<int32_t>(rank), 3, kRegions);
    CommunicatorDefinition all{};
    all.identity = 1000;
    all.id = 7;
    all.size = 4'000'000'000;  // no memory is taken for what nobody told
    all.rank = 3'000'000'000 + 2 - rank;
    all.kind = CommunicatorKind::kIntra;
    all.reserved[kOfWorldsByte] = 1;
    node.define(rank, DefinitionType::kCommunicator, all, {""});
    all.identity = 1001;
    all.id = 8;
    all.size = 3;
    all.rank = rank;
    node.define(rank, DefinitionType::kCommunicator, all, {""});
    WindowDefinition window{};
    window.id = 1;
    window.communicator_id = 7;
    node.define(rank, DefinitionType::kWindow, window, {""});
    node.add_records(rank, 1, kOneSpan);
  }
  node.finish();
  const auto parts = build_model(job.path(), kDefaultOtf2Locations);
  ASSERT_TRUE(parts.has_value());
  const Model& model = (*parts)->model;
  ASSERT_EQ(model.communicators.size(), 4u);
  const GlobalCommunicator& all = model.communicators[2];
  EXPECT_TRUE(all.is_partial());
  EXPECT_THAT(all.members, testing::ElementsAre(2, 1, 0));
  EXPECT_THAT(all.ranks, testing::ElementsAre(3'000'000'000, 3'000'000'001, 3'000'000'002));
  EXPECT_EQ(all.rank_count, 4'000'000'000);
  EXPECT_FALSE(model.communicators[3].is_partial());
  EXPECT_THAT(model.communicators[3].members, testing::ElementsAre(0, 1, 2));
  EXPECT_TRUE(model.groups[0].window_map.empty());
}

/// Two programs under one aon-run, of three ranks and of two; the group of a window's partners has
/// ranks of the process's own world.
TEST(Communicators, groups_of_another_world_have_its_processes) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  struct {
    GroupDefinition head;
    uint32_t members[1];
  } const group = {{2, 1}, {1}};
  for (uint32_t number = 0; number < 5; ++number) {
    const uint32_t rank = number % 3;
    const uint32_t size = number < 3 ? 3 : 2;
    node.add_process(number, static_cast<int32_t>(rank), size, kRegions);
    CommunicatorDefinition world{};
    world.identity = 100 + size;
    world.size = size;
    world.rank = rank;
    world.kind = CommunicatorKind::kWorld;
    node.define(number, DefinitionType::kCommunicator, world, {"MPI_COMM_WORLD"});
    node.define(number, DefinitionType::kGroup, group);
    node.add_records(number, 1, kOneSpan);
  }
  node.finish();
  const auto parts = build_model(job.path(), kDefaultOtf2Locations);
  ASSERT_TRUE(parts.has_value());
  const Model& model = (*parts)->model;
  ASSERT_EQ(model.groups.size(), 5u);
  const auto group_of = [&](uint32_t number) {
    return model.rank_groups[model.groups[number].rank_group_map.at(2)].members;
  };
  EXPECT_THAT(group_of(0), testing::ElementsAre(1));
  EXPECT_THAT(group_of(3), testing::ElementsAre(4));
}

/// Process 0 has met two of the same members that nobody saw made. Which of them process 1 has met
/// nobody can say, nor from which its copy was made.
TEST(Communicators, those_that_nobody_can_tell_apart_are_not_joined) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  const auto define = [&](uint32_t rank, uint32_t id, uint64_t identity, uint32_t parent,
                          uint8_t unseen_count) {
    CommunicatorDefinition told{};
    told.identity = identity;
    told.id = id;
    told.parent_id = parent;
    told.size = 2;
    told.rank = rank;
    told.kind = CommunicatorKind::kIntra;
    told.reserved[kUnseenByte] = unseen_count;
    node.define(rank, DefinitionType::kCommunicator, told, {""});
    WindowDefinition window{};
    window.identity = identity;
    window.id = id;
    window.communicator_id = id;
    node.define(rank, DefinitionType::kWindow, window, {""});
    FileDefinition file{};
    file.identity = identity;
    file.id = id;
    file.communicator_id = id;
    file.mode = kFileReads;
    node.define(rank, DefinitionType::kFile, file, {"name"});
  };
  for (uint32_t rank = 0; rank < 2; ++rank) {
    node.add_process(rank, static_cast<int32_t>(rank), 2, kRegions);
    define(rank, 7, 1000, 0, 1);
    if (rank == 0) define(rank, 8, 1000, 0, 2);
    define(rank, 9, 1001, 7, 1);   // made from one of them
    define(rank, 10, 1002, 0, 1);  // the only one of its members
    node.add_records(rank, 1, kOneSpan);
  }
  node.finish();
  const auto parts = build_model(job.path(), kDefaultOtf2Locations);
  ASSERT_TRUE(parts.has_value());
  const Model& model = (*parts)->model;
  ASSERT_EQ(model.communicators.size(), 2u + 5 + 1);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    const Group& group = model.groups[rank];
    for (const auto& [local, global] : group.communicator_map) {
      const GlobalCommunicator& made = model.communicators[global];
      if (local < 7) continue;
      EXPECT_EQ(made.is_partial(), local != 10) << local;
      if (local == 10) continue;
      EXPECT_THAT(made.members, testing::ElementsAre(rank));
      EXPECT_THAT(made.ranks, testing::ElementsAre(rank));
    }
    EXPECT_EQ(group.window_map.size(), 1u);
    EXPECT_EQ(group.file_map.size(), rank == 0 ? 4u : 3u);
  }
  EXPECT_THAT(model.communicators[model.groups[1].communicator_map.at(10)].members,
              testing::ElementsAre(0, 1));
  EXPECT_EQ(model.windows.size(), 1u);
  EXPECT_EQ(model.files.size(), 5u + 1) << "no file is opened by both but the last";
}

TEST(Files, one_opening_is_one_file_however_each_rank_spells_its_name) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  const std::string names[] = {"data", "/tmp/data"};
  for (uint32_t rank = 0; rank < 2; ++rank) {
    node.add_process(rank, static_cast<int32_t>(rank), 2, kRegions);
    const auto open = [&](uint32_t id, CommunicatorKind kind, const std::string& name) {
      CommunicatorDefinition communicator{};
      communicator.identity = 1000 + id;
      communicator.id = id;
      communicator.size = kind == CommunicatorKind::kSelf ? 1 : 2;
      communicator.rank = kind == CommunicatorKind::kSelf ? 0 : rank;
      communicator.kind = kind;
      node.define(rank, DefinitionType::kCommunicator, communicator, {""});
      const FileDefinition file = {2000 + id, id, id, kFileReads, 0};
      node.define(rank, DefinitionType::kFile, file, {name});
    };
    open(7, CommunicatorKind::kIntra, names[rank]);
    open(8, CommunicatorKind::kSelf, names[rank]);
    node.add_records(rank, 1, kOneSpan);
  }
  node.finish();
  const auto parts = build_model(job.path(), kDefaultOtf2Locations);
  ASSERT_TRUE(parts.has_value());
  const Model& model = (*parts)->model;
  ASSERT_EQ(model.files.size(), 3u);
  EXPECT_EQ(model.groups[0].file_map.at(7), model.groups[1].file_map.at(7));
  EXPECT_NE(model.groups[0].file_map.at(8), model.groups[1].file_map.at(8));
  EXPECT_EQ(model.file_names[model.files[model.groups[1].file_map.at(7)].name], "data");
}

/// Two programs of two ranks, one after the other, whose launcher names no launch: their first
/// openings have one identity.
TEST(Files, openings_of_two_programs_are_told_apart_by_their_names) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  const std::string names[] = {"in.dat", "mesh.dat", "./mesh.dat", "in.dat"};
  const uint32_t ranks[] = {0, 1, 0, 1};  // as they come
  for (uint32_t number = 0; number < 4; ++number) {
    node.add_process(number, static_cast<int32_t>(ranks[number]), 2, kRegions);
    CommunicatorDefinition communicator{};
    communicator.identity = 1000;
    communicator.id = 7;
    communicator.size = 2;
    communicator.rank = ranks[number];
    communicator.kind = CommunicatorKind::kIntra;
    node.define(number, DefinitionType::kCommunicator, communicator, {""});
    const FileDefinition file = {2000, 7, 7, kFileReads, 0};
    node.define(number, DefinitionType::kFile, file, {names[number]});
    node.add_records(number, 1, kOneSpan);
  }
  node.finish();
  const auto parts = build_model(job.path(), kDefaultOtf2Locations);
  ASSERT_TRUE(parts.has_value());
  const Model& model = (*parts)->model;
  const auto file_of = [&](uint32_t number) { return model.groups[number].file_map.at(7); };
  ASSERT_EQ(model.groups.size(), 4u);
  EXPECT_EQ(model.files.size(), 2u);
  EXPECT_EQ(file_of(0), file_of(3));
  EXPECT_EQ(file_of(1), file_of(2));
  EXPECT_NE(file_of(0), file_of(1));
}

struct Grid {
  CartesianDefinition cartesian;
  uint32_t extents[4] = {};
};

/// The extents of one Cartesian topology of a communicator of four.
std::optional<spool::Cartesian> joined(const std::vector<uint32_t>& told, uint32_t count,
                                       CommunicatorKind kind = CommunicatorKind::kIntra) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  Grid grid = {{7, count, 1}};
  std::copy(told.begin(), told.end(), grid.extents);
  for (uint32_t rank = 0; rank < 4; ++rank) {
    node.add_process(rank, static_cast<int32_t>(rank), 4, kRegions);
    CommunicatorDefinition plate{};
    plate.identity = 1000;
    plate.id = 7;
    plate.size = 4;
    plate.rank = rank;
    plate.kind = kind;
    node.define(rank, DefinitionType::kCommunicator, plate, {"plate"});
    node.define(rank, DefinitionType::kCartesian, grid);
    node.add_records(rank, 1, kOneSpan);
  }
  node.finish();
  const auto parts = build_model(job.path(), kDefaultOtf2Locations);
  if (!parts.has_value() || (*parts)->model.communicators.size() != 3) return {};
  return (*parts)->model.communicators[2].cartesian;
}

TEST(Communicators, have_the_cartesian_topology_that_members_told) {
  const std::optional<spool::Cartesian> found = joined({2, 1, 2}, 3);
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(found->extents, testing::ElementsAre(2, 1, 2));
  EXPECT_EQ(found->periodic, 1u);
}

TEST(Communicators, have_no_topology_that_does_not_hold_them) {
  EXPECT_FALSE(joined({2, 3}, 2).has_value());
  EXPECT_FALSE(joined({2, 0}, 2).has_value());
  EXPECT_FALSE(joined({}, 0).has_value());
  // Its places are four modulo 2^32.
  EXPECT_FALSE(joined({0x80000001, 2, 2, 1}, 4).has_value());
  EXPECT_FALSE(joined({2, 2}, 2, CommunicatorKind::kInter).has_value());
  EXPECT_FALSE(joined({2, 2}, 2, CommunicatorKind::kNccl).has_value());
}

TEST(Communicators, have_the_neighbours_that_members_told) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  for (uint32_t rank = 0; rank < 3; ++rank) {
    node.add_process(rank, static_cast<int32_t>(rank), 3, kRegions);
    CommunicatorDefinition ring{};
    ring.identity = 1000;
    ring.kind = CommunicatorKind::kIntra;
    ring.id = 7;
    ring.size = 3;
    ring.rank = 2 - rank;
    node.define(rank, DefinitionType::kCommunicator, ring, {"ring"});
    struct {
      NeighborsDefinition neighbors;
      uint32_t sources[2];
    } told = {{7, 2}, {ring.rank, rank == 1 ? 3u : 0u}};  // the rank in the middle has a stranger
    if (rank != 0) node.define(rank, DefinitionType::kNeighbors, told);
    node.add_records(rank, 1, kOneSpan);
  }
  node.finish();
  const auto parts = build_model(job.path(), kDefaultOtf2Locations);
  ASSERT_TRUE(parts.has_value());
  const auto& sources = (*parts)->model.communicators.at(2).sources;
  ASSERT_EQ(sources.size(), 2u);
  ASSERT_NE(sources[0], nullptr);
  EXPECT_THAT(*sources[0], testing::ElementsAre(0, 0));
  EXPECT_EQ(sources[1], nullptr);
}

/// Of two that are one, the first told a topology that fits what was known by then.
TEST(Communicators, that_grow_have_no_topology_of_before) {
  for (const uint32_t told : {0u, 1u}) {
    TemporaryFolder job;
    NodeSpool node(job.path(), "n1");
    for (uint32_t rank = 0; rank < 2; ++rank)
      node.add_process(rank, static_cast<int32_t>(rank), 2, kRegions);
    CommunicatorDefinition plate{};
    plate.identity = 1000;
    plate.kind = CommunicatorKind::kIntra;
    plate.id = 7;
    plate.size = told;
    node.define(0, DefinitionType::kCommunicator, plate, {"plate"});
    node.define(0, DefinitionType::kCartesian, Grid{{7, 1, 0}, {told}});
    plate.id = 8;
    plate.size = 2;
    node.define(0, DefinitionType::kCommunicator, plate, {"plate"});
    node.add_records(0, 1, kOneSpan);
    node.finish();
    const auto parts = build_model(job.path(), kDefaultOtf2Locations);
    ASSERT_TRUE(parts.has_value());
    const GlobalCommunicator& joined = (*parts)->model.communicators.back();
    EXPECT_EQ(joined.members.size(), 2u);
    EXPECT_FALSE(joined.cartesian.has_value());
  }
}

}  // namespace
}  // namespace aon::writers
