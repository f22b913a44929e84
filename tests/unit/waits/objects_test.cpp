// Who waits where communicators, windows and files are made, used collectively and freed.

#include <aon/mpi.h>

#include "tests/unit/waits/ranks.h"

namespace aon::writers {
namespace {

constexpr uint32_t kWindow = 3;  // local ids
constexpr uint32_t kFile = 5;

/// The world's window and file; the regions are those of `name`.
Model model_of(uint32_t ranks, const std::string& name) {
  Model model = make_model(ranks, name);
  model.windows.push_back({"window", 0, WindowFlavour::kCreate});
  model.file_names.emplace_back("file");
  model.files.push_back({0, 0, kFileWrites});
  for (Group& group : model.groups) {
    group.window_map[kWindow] = 0;
    group.file_map[kFile] = 0;
  }
  return model;
}

Event on_window(RmaOperation operation) {
  Event e = event(EventKind::kRmaCollectiveEnd, 0, 0);
  e.communicator = kWindow;
  e.tag = static_cast<int32_t>(operation);
  return e;
}

Event on_file(EventKind kind, IoOperation operation, uint32_t flags, uint64_t request = 0) {
  Event e = event(kind, 0, 0);
  e.communicator = kFile;
  e.peer = static_cast<int32_t>(operation);
  e.tag = static_cast<int32_t>(flags);
  e.request = request;
  return e;
}

/// Three ranks that are in one call each: the second one comes last.
std::vector<Rank> late_second(const Event& in_call) {
  return {Rank().call(kOther, 10, 52, {in_call}), Rank().call(kOther, 50, 53, {in_call}),
          Rank().call(kOther, 40, 54, {in_call})};
}

testing::Matcher<std::vector<Row>> wait_for_second(WaitKind kind) {
  return testing::ElementsAre(Row{0, kOther, kind, 1, 40, 40}, Row{2, kOther, kind, 1, 10, 10});
}

TEST(Creations, wait_for_the_last_member) {
  for (const char* name : {"MPI_Comm_dup", "MPI_Comm_split", "MPI_Cart_create"}) {
    const WaitSummary summary =
        analyse(model_of(3, name), late_second(collective(CollectiveOperation::kCreateHandle)));
    EXPECT_THAT(rows(summary), wait_for_second(WaitKind::kCreate)) << name;
    EXPECT_EQ(summary.collective_count, 1u);
    EXPECT_EQ(summary.incomplete_count, 0u);
    EXPECT_TRUE(summary.lateness.rows().empty());
    EXPECT_TRUE(summary.times.empty());
  }
}

TEST(Creations, are_freed_together) {
  const WaitSummary summary = analyse(model_of(3, "MPI_Comm_free"),
                                      late_second(collective(CollectiveOperation::kDestroyHandle)));
  EXPECT_THAT(rows(summary), wait_for_second(WaitKind::kFree));
}

TEST(Creations, are_given_hints_together) {
  const WaitSummary summary = analyse(model_of(3, "MPI_Comm_set_info"),
                                      late_second(collective(CollectiveOperation::kSetInfo)));
  EXPECT_THAT(rows(summary), wait_for_second(WaitKind::kSetInfo));
  EXPECT_EQ(summary.collective_count, 1u);
}

TEST(Creations, by_some_members_or_with_others_are_left_out_and_shift_nothing) {
  for (const char* name :
       {"MPI_Comm_create_group", "MPI_Comm_create_from_group", "MPI_Intercomm_create",
        "MPI_Intercomm_create_from_groups", "MPI_Comm_spawn", "MPI_Comm_spawn_multiple",
        "MPI_Comm_accept", "MPI_Comm_connect", "MPI_Comm_join"}) {
    const std::vector<Event> make = {collective(CollectiveOperation::kCreateHandle)};
    const std::vector<Event> barrier = {collective(CollectiveOperation::kBarrier)};
    const WaitSummary summary =
        analyse(model_of(2, name),
                {Rank()
                     .call(kOther, 1, 4, make)
                     .call(kCollective, 5, 8, make)
                     .call(kCollective, 10, 41, barrier),
                 Rank().call(kCollective, 7, 9, make).call(kCollective, 40, 42, barrier)});
    EXPECT_THAT(rows(summary),
                testing::UnorderedElementsAre(Row{0, kCollective, WaitKind::kCreate, 1, 2, 2},
                                              Row{0, kCollective, WaitKind::kBarrier, 1, 30, 30}))
        << name;
    EXPECT_EQ(summary.incomplete_count, 1u) << name;
  }
}

TEST(Creations, of_a_communicator_that_some_alone_have_are_counted) {
  Model model = model_of(2, "MPI_Comm_spawn");
  model.communicators[0].kind = CommunicatorKind::kSelf;
  const std::vector<Event> make = {collective(CollectiveOperation::kCreateHandle)};
  EXPECT_EQ(analyse(model, {Rank().call(kOther, 1, 4, make), Rank()}).incomplete_count, 1u);
  model.regions[10 - kOther].name = "MPI_Comm_dup";
  EXPECT_EQ(analyse(model, {Rank().call(kOther, 1, 4, make), Rank()}).incomplete_count, 0u);
}

TEST(Creations, that_a_request_completes_are_waited_for_there) {
  Event start = collective(CollectiveOperation::kCreateHandle);
  start.kind = EventKind::kCollectiveRequest;
  start.request = 9;
  start.region = kOther;
  Event end = start;
  end.kind = EventKind::kCollectiveComplete;
  const auto rank = [&](uint64_t start_ns) {
    return Rank()
        .call(kOther, start_ns, start_ns + 1, {start})
        .call(kWaitall, start_ns + 5, 60, {end});
  };
  const WaitSummary summary = analyse(model_of(2, "MPI_Comm_idup"), {rank(10), rank(50)});
  EXPECT_THAT(rows(summary), testing::ElementsAre(Row{0, kWaitall, WaitKind::kCreate, 1, 35, 35}));
  EXPECT_EQ(summary.collective_count, 1u);
}

TEST(Creations, hold_only_who_is_still_in_the_call) {
  // Ranks 0 and 1 have left before rank 2 came: it cannot have held them.
  const std::vector<Event> free = {collective(CollectiveOperation::kDestroyHandle)};
  const WaitSummary summary =
      analyse(model_of(3, "MPI_Comm_free"),
              {Rank().call(kOther, 10, 30, free), Rank().call(kOther, 15, 31, free),
               Rank().call(kOther, 80, 90, free)});
  EXPECT_THAT(rows(summary), testing::ElementsAre(Row{0, kOther, WaitKind::kFree, 1, 5, 5}));
}

TEST(Creations, are_judged_with_the_error_of_the_clocks) {
  Model model = model_of(2, "MPI_Comm_dup");
  model.groups[1].node = 1;
  model.clock_error_ns = {5, 10};
  const std::vector<Event> make = {collective(CollectiveOperation::kCreateHandle)};
  const std::vector<Rank> ranks = {Rank().call(kOther, 10, 30, make),
                                   Rank().call(kOther, 40, 45, make)};
  EXPECT_THAT(rows(analyse(model, ranks)),
              testing::ElementsAre(Row{0, kOther, WaitKind::kCreate, 1, 20, 20}));
  model.clock_error_ns = {0, 9};
  EXPECT_TRUE(analyse(model, ranks).rows.empty());
}

TEST(Creations, of_two_threads_hide_nothing_but_their_own) {
  Model model = model_of(2, "MPI_Comm_dup");
  Location second = model.locations[0];
  second.id = uint64_t{1} << 32;
  model.locations.insert(model.locations.begin() + 1, second);
  const std::vector<Event> make = {collective(CollectiveOperation::kCreateHandle)};
  const std::vector<Event> barrier = {collective(CollectiveOperation::kBarrier)};
  const WaitSummary summary =
      analyse(model, {Rank().call(kOther, 1, 4, make).call(kCollective, 10, 41, barrier),
                      Rank().call(kOther, 5, 6, make),
                      Rank()
                          .call(kOther, 2, 4, make)
                          .call(kOther, 5, 6, make)
                          .call(kCollective, 40, 42, barrier)});
  EXPECT_THAT(rows(summary),
              testing::ElementsAre(Row{0, kCollective, WaitKind::kBarrier, 1, 30, 30}));
  EXPECT_EQ(summary.incomplete_count, 2u);
}

TEST(Windows, are_made_fenced_and_freed_together) {
  const struct {
    const char* name;
    RmaOperation operation;
    WaitKind kind;
  } kCases[] = {{"MPI_Win_create", RmaOperation::kCreate, WaitKind::kCreate},
                {"MPI_Win_allocate", RmaOperation::kCreateAllocated, WaitKind::kCreate},
                {"MPI_Win_fence", RmaOperation::kFence, WaitKind::kFence},
                {"MPI_Win_set_info", RmaOperation::kSetInfo, WaitKind::kSetInfo},
                {"MPI_Win_free", RmaOperation::kFree, WaitKind::kFree},
                {"MPI_Win_free", RmaOperation::kFreeAllocated, WaitKind::kFree}};
  for (const auto& one : kCases) {
    const WaitSummary summary =
        analyse(model_of(3, one.name), late_second(on_window(one.operation)));
    EXPECT_THAT(rows(summary), wait_for_second(one.kind)) << one.name;
    EXPECT_EQ(summary.collective_count, 1u);
    EXPECT_TRUE(summary.lateness.rows().empty());
  }
}

/// Both make something of what failed to get hints; only calls of that function have no order.
TEST(Hints, that_one_member_failed_to_give_hide_no_other_function) {
  const std::vector<Event> make = {collective(CollectiveOperation::kCreateHandle)};
  for (const bool is_window : {false, true}) {
    Model model = model_of(2, is_window ? "MPI_Win_set_info" : "MPI_Comm_set_info");
    if (!is_window) model.regions[10 - kOther].role = RegionRole::kCollectiveOther;
    const std::vector<Event> give = {is_window ? on_window(RmaOperation::kSetInfo)
                                               : collective(CollectiveOperation::kSetInfo)};
    Event failed = test::enter(2, kOther);
    failed.flags = kFailed;
    failed.communicator = give[0].communicator;
    failed.operation = give[0].operation;
    for (const bool has_second_failed : {false, true}) {
      Rank first;
      Rank second;
      first.add(failed).add(leave(3, kOther));
      if (has_second_failed) second.add(failed).add(leave(3, kOther));
      first.call(kOther, 10, 22, give).call(kCollective, 30, 42, make);
      second.call(kOther, 20, 23, give).call(kCollective, 40, 43, make);
      const Row hints = {0, kOther, WaitKind::kSetInfo, 1, 10, 10};
      const Row creation = {0, kCollective, WaitKind::kCreate, 1, 10, 10};
      std::vector<Row> expected = {creation};
      if (has_second_failed) expected.push_back(hints);
      EXPECT_THAT(rows(analyse(model, {first, second})),
                  testing::UnorderedElementsAreArray(expected))
          << is_window << has_second_failed;
    }
  }
}

TEST(Windows, have_fences_that_match_one_by_one_until_one_fails) {
  const std::vector<Event> fence = {on_window(RmaOperation::kFence)};
  const auto ranks = [&](bool has_first_failed, bool has_second_failed) {
    Event enter = test::enter(2, kOther);
    enter.flags = kFailed;
    enter.communicator = fence[0].communicator;
    Rank first;
    Rank second;
    if (has_first_failed) first.add(enter).add(leave(3, kOther));
    if (has_second_failed) second.add(enter).add(leave(3, kOther));
    first.call(kOther, 10, 21, fence).call(kOther, 30, 61, fence);
    second.call(kOther, 20, 22, fence).call(kOther, 60, 62, fence);
    return std::vector<Rank>{first, second};
  };
  const Model model = model_of(2, "MPI_Win_fence");
  for (const bool have_failed : {false, true}) {
    const WaitSummary alike = analyse(model, ranks(have_failed, have_failed));
    EXPECT_THAT(rows(alike), testing::ElementsAre(Row{0, kOther, WaitKind::kFence, 2, 40, 30}));
    EXPECT_EQ(alike.alike_failure_count, have_failed ? 2u : 0u);
  }
  const WaitSummary summary = analyse(model, ranks(true, false));
  EXPECT_TRUE(summary.rows.empty());
  EXPECT_EQ(summary.incomplete_count, 3u) << "that have three numbers";
}

TEST(Files, are_waited_for_in_every_collective_call) {
  const Event kCases[] = {
      on_file(EventKind::kIoOpen, IoOperation::kOpen, kIoCollective),
      on_file(EventKind::kIoClose, IoOperation::kClose, kIoCollective),
      on_file(EventKind::kIoComplete, IoOperation::kWrite, kIoCollective),
      on_file(EventKind::kIoComplete, IoOperation::kSync, kIoCollective),
      on_file(EventKind::kIoSeek, IoOperation::kSeek, kIoShared | kIoFromEnd),
      on_file(EventKind::kIoChange, IoOperation::kSetView, kIoCollective),
      on_file(EventKind::kIoChange, IoOperation::kSetInfo, kIoCollective),
      on_file(EventKind::kIoIssued, IoOperation::kRead, kIoCollective | kIoSplitBegin),
      on_file(EventKind::kIoComplete, IoOperation::kRead, kIoCollective | kIoSplitEnd)};
  for (const Event& one : kCases) {
    const WaitSummary summary = analyse(model_of(3, "MPI_File_call"), late_second(one));
    EXPECT_THAT(rows(summary), wait_for_second(WaitKind::kFile));
    EXPECT_EQ(summary.collective_count, 1u);
  }
}

/// The call of the first rank, or of both, failed once; then they change the file, and write.
std::vector<Rank> fail_once(bool has_second_failed = false) {
  Event failed = test::enter(2, kOther);
  failed.flags = kFailed;
  failed.communicator = kFile;
  const std::vector<Event> change = {
      on_file(EventKind::kIoChange, IoOperation::kSetView, kIoCollective)};
  const std::vector<Event> write = {
      on_file(EventKind::kIoComplete, IoOperation::kWrite, kIoCollective)};
  Rank first;
  first.add(failed).add(leave(3, kOther));
  first.call(kOther, 10, 22, change).call(kCollective, 30, 42, write);
  Rank second;
  if (has_second_failed) second.add(failed).add(leave(3, kOther));
  return {first, second.call(kOther, 20, 23, change).call(kCollective, 40, 43, write)};
}

TEST(Files, hide_nothing_behind_a_call_that_failed_on_all_members_alike) {
  for (const char* name : {"MPI_File_set_view", "MPI_File_write_all"}) {
    const WaitSummary summary = analyse(model_of(2, name), fail_once(true));
    EXPECT_THAT(rows(summary),
                testing::UnorderedElementsAre(Row{0, kOther, WaitKind::kFile, 1, 10, 10},
                                              Row{0, kCollective, WaitKind::kFile, 1, 10, 10}))
        << name;
    EXPECT_EQ(summary.alike_failure_count, 2u);
  }
}

TEST(Files, have_no_order_of_changes_by_a_function_that_failed) {
  for (const char* name : {"MPI_File_set_view", "MPI_File_set_info", "MPI_File_set_atomicity",
                           "MPI_File_set_size", "MPI_File_preallocate"}) {
    const WaitSummary summary = analyse(model_of(2, name), fail_once());
    EXPECT_THAT(rows(summary),
                testing::ElementsAre(Row{0, kCollective, WaitKind::kFile, 1, 10, 10}))
        << name;
    EXPECT_EQ(summary.incomplete_count, 2u) << "that have two numbers: " << name;
  }
}

TEST(Files, have_no_order_behind_an_access_that_failed) {
  for (const char* name : {"MPI_File_sync", "MPI_File_write_all", "MPI_File_read_ordered"})
    EXPECT_TRUE(analyse(model_of(2, name), fail_once()).rows.empty()) << name;
}

TEST(Files, are_not_waited_for_in_other_calls) {
  const Event kCases[] = {on_file(EventKind::kIoComplete, IoOperation::kWrite, 0),
                          on_file(EventKind::kIoComplete, IoOperation::kWrite, kIoShared),
                          on_file(EventKind::kIoSeek, IoOperation::kSeek, 0)};
  for (const Event& one : kCases) {
    const WaitSummary summary = analyse(model_of(3, "MPI_File_call"), late_second(one));
    EXPECT_EQ(summary.collective_count + summary.incomplete_count, 0u);
  }
}

TEST(Files, have_requests_of_their_own_that_wait_where_they_are_completed) {
  const uint32_t flags = kIoCollective | kIoNonblocking;
  const auto rank = [&](uint64_t start_ns) {
    return Rank()
        .call(kOther, start_ns, start_ns + 1,
              {on_file(EventKind::kIoIssued, IoOperation::kWrite, flags, 4)})
        .call(kWaitall, start_ns + 5, 60,
              {on_file(EventKind::kIoComplete, IoOperation::kWrite, flags, 4)});
  };
  const WaitSummary summary = analyse(model_of(2, "MPI_File_iwrite_all"), {rank(10), rank(50)});
  EXPECT_THAT(rows(summary), testing::ElementsAre(Row{0, kWaitall, WaitKind::kFile, 1, 35, 35}));
}

TEST(Files, of_an_unknown_communicator_or_of_one_process_are_no_ones_matter) {
  const Event write = on_file(EventKind::kIoComplete, IoOperation::kWrite, kIoCollective);
  Model model = model_of(3, "MPI_File_write_all");
  model.files[0].communicator.reset();
  EXPECT_EQ(analyse(model, late_second(write)).collective_count, 0u);
  model = model_of(3, "MPI_File_write_all");
  model.communicators[0].kind = CommunicatorKind::kSelf;
  const WaitSummary summary = analyse(model, late_second(write));
  EXPECT_EQ(summary.collective_count + summary.incomplete_count, 0u);
}

/// A process that opens files for ever: each function is counted apart on each.
TEST(Files, beyond_a_million_functions_on_files_of_a_process_are_left_out_and_counted) {
  constexpr uint32_t kRegions = 1024;
  constexpr uint32_t kFiles = 1025;
  Model model = model_of(2, "MPI_File_write_all");
  model.communicators.push_back(model.communicators[0]);
  while (model.regions.size() < 100 + kRegions) model.regions.push_back(model.regions[10 - kOther]);
  for (uint32_t i = 0; i < kRegions; ++i) model.groups[0].region_map[100 + i] = 100 + i;
  for (uint32_t i = 0; i < kFiles; ++i) {
    model.files.push_back({0, 1, kFileWrites});
    model.groups[0].file_map[100 + i] = 1 + i;
  }
  const Event write = on_file(EventKind::kIoComplete, IoOperation::kWrite, kIoCollective);
  const auto analysis = make_wait_analysis(testing::TempDir());
  EXPECT_TRUE(analysis->begin(model));
  EXPECT_TRUE(analysis->begin_location(model.locations[0]));
  for (uint32_t file = 0; file < kFiles; ++file) {
    Rank rank;
    Event own = write;
    own.communicator = 100 + file;
    for (uint32_t region = 0; region < kRegions; ++region)
      rank.call(100 + region, 1 + file, 1 + file, {own});
    EXPECT_TRUE(analysis->events(rank.events()));
  }
  EXPECT_TRUE(analysis->events(Rank().call(kOther, 5000, 6000, {write}).events()));
  EXPECT_TRUE(analysis->end_location());
  EXPECT_TRUE(analysis->begin_location(model.locations[1]));
  EXPECT_TRUE(analysis->events(Rank().call(kOther, 5500, 6000, {write}).events()));
  EXPECT_TRUE(analysis->end_location());
  EXPECT_TRUE(analysis->finish({}));
  EXPECT_TRUE(analysis->summary()->rows.empty());
  EXPECT_EQ(analysis->summary()->incomplete_count, uint64_t{kRegions} * kFiles + 2);
}

const std::vector<Event> kMake = {collective(CollectiveOperation::kCreateHandle)};

TEST(Creations, reckon_with_the_clocks_error_for_each_member) {
  Model model = model_of(3, "MPI_Comm_dup");
  model.groups[1].node = model.groups[2].node = 1;
  model.clock_error_ns = {0, 10};
  EXPECT_THAT(
      rows(analyse(model, {Rank().call(kOther, 10, 30, kMake), Rank().call(kOther, 35, 36, kMake),
                           Rank().call(kOther, 80, 81, kMake)})),
      testing::ElementsAre(Row{0, kOther, WaitKind::kCreate, 1, 20, 20}));
}

TEST(Creations, by_clocks_that_were_never_compared_wait_as_their_times_are) {
  Model model = model_of(2, "MPI_Comm_dup");
  model.groups[1].node = 1;
  model.clock_error_ns = {0, kUnknownClockError};
  EXPECT_TRUE(analyse(model, {Rank().call(kOther, 10, 1000, kMake),
                              Rank().call(kOther, 1'000'000, 1'000'001, kMake)})
                  .rows.empty());
}

TEST(Creations, of_some_by_two_threads_hide_no_others) {
  Model model = model_of(2, "MPI_Comm_create_group");
  Location second = model.locations[0];
  second.id = uint64_t{1} << 32;
  model.locations.insert(model.locations.begin() + 1, second);
  const WaitSummary summary =
      analyse(model, {Rank().call(kOther, 1, 4, kMake).call(kCollective, 10, 41, kMake),
                      Rank().call(kOther, 2, 5, kMake),
                      Rank().call(kOther, 1, 5, kMake).call(kCollective, 40, 42, kMake)});
  EXPECT_THAT(rows(summary),
              testing::ElementsAre(Row{0, kCollective, WaitKind::kCreate, 1, 30, 30}));
  EXPECT_GT(summary.incomplete_count, 0u);
  EXPECT_EQ(summary.of_some_count, summary.incomplete_count);
}

TEST(Creations, that_failed_on_one_member_leave_no_order) {
  Model model = model_of(2, "MPI_Comm_dup");
  for (GlobalRegion& region : model.regions)
    if (region.name == "MPI_Comm_dup") region.role = RegionRole::kCollectiveOther;
  Event failed = test::enter(2, kOther);
  failed.flags = kFailed;
  Rank first;
  first.add(failed).add(leave(3, kOther)).call(kOther, 100, 200, kMake);
  EXPECT_TRUE(
      analyse(model, {first, Rank().call(kOther, 2, 150, kMake).call(kOther, 160, 201, kMake)})
          .rows.empty());
}

/// Each is called `before` times, fails, and is called once more.
TEST(Creations, that_failed_on_all_members_alike_hide_nothing) {
  Model model = model_of(2, "MPI_Win_create");
  const std::vector<Event> make = {on_window(RmaOperation::kCreate)};
  Event failed = test::enter(4, kOther);
  failed.flags = kFailed;
  failed.communicator = kMake[0].communicator;
  failed.operation = CollectiveOperation::kCreateHandle;
  const auto analyse_with = [&](bool is_at_once) {
    Rank first;
    Rank second;
    first.call(kOther, 1, 2, make).add(failed).add(leave(5, kOther)).call(kOther, 10, 41, make);
    if (is_at_once) {
      second.call(kOther, 2, 3, make).add(failed).add(leave(5, kOther)).call(kOther, 40, 42, make);
    } else {
      second.add(failed).add(leave(5, kOther)).call(kOther, 6, 7, make).call(kOther, 40, 42, make);
    }
    return analyse(model, {first, second});
  };
  const WaitSummary alike = analyse_with(true);
  EXPECT_EQ(alike.collective_count, 2u);
  EXPECT_EQ(alike.alike_failure_count, 0u) << "that the archive has none of";
  EXPECT_EQ(analyse_with(false).collective_count, 0u) << "at another place in the order";
}

}  // namespace
}  // namespace aon::writers
