/// What calls of MPI mean for the order of messages and collectives.
/// Thread: any.   Cost: a comparison.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <string_view>

#include "writers/writer.h"

namespace aon::writers::profile {

/// Messages and collectives, and what completes them. One that failed may have taken a message, or
/// a number of its communicator; others, an MPI_File_open for instance, have not.
inline bool is_exchange(RegionRole role) {
  switch (role) {
    case RegionRole::kPointToPoint:
    case RegionRole::kBarrier:
    case RegionRole::kOneToAll:
    case RegionRole::kAllToOne:
    case RegionRole::kAllToAll:
    case RegionRole::kCollectiveOther:
      return true;
    default:
      return false;
  }
}

/// Makes, names or frees communicators, or sets their hints. Such calls have no number among the
/// other collectives of one, but numbers of their own; programs retry some, MPI_Comm_connect for
/// instance.
inline bool is_of_communicators(const GlobalRegion& region) {
  if (region.role != RegionRole::kCollectiveOther) return false;
  for (const char* start :
       {"MPI_Comm_", "MPI_Cart_", "MPI_Graph_", "MPI_Dist_graph_", "MPI_Intercomm_"}) {
    if (region.name.starts_with(start)) return true;
  }
  return false;
}

/// Makes a communicator by a part of its parent's members, or with others than these: whom such a
/// call meets its record does not say.
inline bool creates_with_others(std::string_view name) {
  constexpr std::string_view kNames[] = {
      "MPI_Comm_create_group", "MPI_Comm_create_from_group",
      "MPI_Intercomm_create",  "MPI_Intercomm_create_from_groups",
      "MPI_Comm_spawn",        "MPI_Comm_spawn_multiple",
      "MPI_Comm_accept",       "MPI_Comm_connect",
      "MPI_Comm_join"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

/// Collectives that set a file's size, or how a file, window or communicator is used. They match by
/// their number, too; programs try some that a file system has not got, and go on.
inline bool changes_object(std::string_view name) {
  constexpr std::string_view kNames[] = {
      "MPI_File_set_size", "MPI_File_preallocate", "MPI_File_set_view", "MPI_File_set_atomicity",
      "MPI_File_set_info", "MPI_Win_set_info",     "MPI_Comm_set_info"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

/// Collectives that match by their number among the calls of a window or file, or make a window:
/// who alone failed in one has other numbers from then on.
inline bool is_numbered_on_object(std::string_view name) {
  if (name == "MPI_Win_fence" || name == "MPI_File_sync" || name == "MPI_File_seek_shared")
    return true;
  if (name.starts_with("MPI_Win_create") || name.starts_with("MPI_Win_allocate")) return true;
  return name.starts_with("MPI_File_") && (name.find("_all") != std::string_view::npos ||
                                           name.find("_ordered") != std::string_view::npos);
}

/// Starts persistent requests: MPI_Start, MPI_Startall, and what is recorded of each request of the
/// latter. A collective that is started so matches by when it was made, so it is started in any
/// order (MPI-4.1, 6.13) and has no number among the others of its communicator: it has its own
/// (pack_instance).
inline bool is_start(const GlobalRegion& region) {
  return region.paradigm == Paradigm::kMpi && region.name.starts_with("MPI_Start");
}

/// Completes requests only where that needs no waiting: programs poll by it. Of those calls that
/// found nothing there is at most one in N.
inline bool is_test(const GlobalRegion& region) {
  return region.paradigm == Paradigm::kMpi && region.name.starts_with("MPI_Test") &&
         region.name != "MPI_Test_cancelled";
}

/// What starts a collective of an operation in which each member may need all others, and what
/// prepares persistent ones.
struct Starters {
  CollectiveOperation operation;
  std::string_view started;
  std::string_view prepared;
};
constexpr Starters kStarters[] = {
    {CollectiveOperation::kBarrier, "MPI_Ibarrier", "MPI_Barrier_init"},
    {CollectiveOperation::kAllgather, "MPI_Iallgather", "MPI_Allgather_init"},
    {CollectiveOperation::kAllgatherv, "MPI_Iallgatherv", "MPI_Allgatherv_init"},
    {CollectiveOperation::kAlltoall, "MPI_Ialltoall", "MPI_Alltoall_init"},
    {CollectiveOperation::kAlltoallv, "MPI_Ialltoallv", "MPI_Alltoallv_init"},
    {CollectiveOperation::kAlltoallw, "MPI_Ialltoallw", "MPI_Alltoallw_init"},
    {CollectiveOperation::kAllreduce, "MPI_Iallreduce", "MPI_Allreduce_init"},
    {CollectiveOperation::kReduceScatter, "MPI_Ireduce_scatter", "MPI_Reduce_scatter_init"},
    {CollectiveOperation::kReduceScatterBlock, "MPI_Ireduce_scatter_block",
     "MPI_Reduce_scatter_block_init"},
};

/// Of the kEnter of an MPI_Pcontrol: whether nothing is recorded behind it. Level 0 pauses, and the
/// call that resumes is not recorded; one without a level may have been either.
inline bool pauses(const Event& event) {
  return event.value_type() != ValueType::kSigned || event.bytes == 0;
}

}  // namespace aon::writers::profile
