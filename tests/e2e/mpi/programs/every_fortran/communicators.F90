! Every way to make, name, ask about and free a communicator; groups.
#include "every.inc"
subroutine communicators(me, other)
  USE_MPI
  implicit none
  INCLUDE_MPI
  integer :: me, other, error, length, result, rank, number, one, from, to, weight, back
  integer :: dims(2), coords(2), edges(2), ends(2), ranges(3, 1), list(1)
  logical :: flag, periods(2)
  character(len=MPI_MAX_OBJECT_NAME) :: name
  COMM :: comm, half, between
  GROUP :: all, mine, others, made
  INFO :: hints
  REQUEST :: request

  one = 1
  call MPI_Comm_dup(W, comm ERROR)
  call MPI_Comm_compare(W, comm, result ERROR)
  CHECK(result == MPI_CONGRUENT)
  call MPI_Comm_set_name(comm, ' a copy ' ERROR)
  call MPI_Comm_get_name(comm, name, length ERROR)
  CHECK(name == 'a copy' .or. name == ' a copy')
  CHECK(length == len_trim(name))
  call MPI_Comm_get_info(comm, hints ERROR)
  call MPI_Comm_set_info(comm, hints ERROR)
  call MPI_Info_free(hints ERROR)
  call use_and_free(2)
  call MPI_Comm_dup_with_info(W, MPI_INFO_NULL, comm ERROR)
  call use_and_free(2)
  call MPI_Comm_idup(W, comm, request ERROR)
  call MPI_Wait(request, MPI_STATUS_IGNORE ERROR)
  call use_and_free(2)
#ifdef HAS_MPI_4
  call MPI_Comm_idup_with_info(W, MPI_INFO_NULL, comm, request ERROR)
  call MPI_Wait(request, MPI_STATUS_IGNORE ERROR)
  call use_and_free(2)
#endif
  call MPI_Comm_split(W, 0, -me, comm ERROR)
  call MPI_Comm_rank(comm, rank ERROR)
  CHECK(rank == other)
  call use_and_free(2)
  call MPI_Comm_split_type(W, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, comm ERROR)
  call use_and_free(2)
  call MPI_Comm_group(W, all ERROR)
  call MPI_Comm_create(W, all, comm ERROR)
  call use_and_free(2)
  call MPI_Comm_create_group(W, all, 5, comm ERROR)
  call use_and_free(2)
  call MPI_Comm_get_parent(comm ERROR)
  CHECK(comm == MPI_COMM_NULL)

  call MPI_Comm_split(W, me, 0, half ERROR)
  call MPI_Intercomm_create(half, 0, W, other, 7, between ERROR)
  call MPI_Comm_test_inter(between, flag ERROR)
  call MPI_Comm_remote_size(between, number ERROR)
  CHECK(flag .and. number == 1)
  call MPI_Comm_remote_group(between, made ERROR)
  call MPI_Group_size(made, number ERROR)
  CHECK(number == 1)
  call MPI_Group_free(made ERROR)
  call MPI_Intercomm_merge(between, me == 1, comm ERROR)
  call use_and_free(2)
  call MPI_Comm_free(between ERROR)
  call MPI_Comm_disconnect(half ERROR)
  CHECK(half == MPI_COMM_NULL)

  ! Cartesian.
  dims = (/0, 1/)
  periods = (/.true., .false./)
  call MPI_Dims_create(2, 2, dims ERROR)
  CHECK(dims(1) == 2 .and. dims(2) == 1)
  call MPI_Cart_map(W, 2, dims, periods, rank ERROR)
  CHECK(rank >= 0 .and. rank < 2)
  call MPI_Cart_create(W, 2, dims, periods, .false., comm ERROR)
  call MPI_Topo_test(comm, result ERROR)
  CHECK(result == MPI_CART)
  call MPI_Cartdim_get(comm, number ERROR)
  CHECK(number == 2)
  periods = .false.
  call MPI_Cart_get(comm, 2, dims, periods, coords ERROR)
  CHECK(coords(1) == me .and. periods(1) .and. .not. periods(2))
  call MPI_Cart_coords(comm, other, 2, coords ERROR)
  call MPI_Cart_rank(comm, coords, rank ERROR)
  CHECK(coords(1) == other .and. rank == other)
  call MPI_Cart_shift(comm, 1, 1, from, to ERROR)
  CHECK(from == MPI_PROC_NULL .and. to == MPI_PROC_NULL)
  call MPI_Cart_sub(comm, (/.false., .true./), half ERROR)
  call MPI_Comm_size(half, number ERROR)
  CHECK(number == 1)
  call MPI_Comm_free(half ERROR)
  call use_and_free(2)

  ! Graphs.
  ends = (/1, 2/)
  edges = (/1, 0/)
  call MPI_Graph_map(W, 2, ends, edges, rank ERROR)
  CHECK(rank >= 0 .and. rank < 2)
  call MPI_Graph_create(W, 2, ends, edges, .false., comm ERROR)
  call MPI_Graphdims_get(comm, number, result ERROR)
  CHECK(number == 2 .and. result == 2)
  ends = 0
  call MPI_Graph_get(comm, 2, 2, ends, edges ERROR)
  CHECK(ends(1) == 1 .and. edges(1) == 1)
  call MPI_Graph_neighbors_count(comm, other, number ERROR)
  call MPI_Graph_neighbors(comm, other, 1, list ERROR)
  CHECK(number == 1 .and. list(1) == me)
  call use_and_free(2)
  call MPI_Dist_graph_create(W, 1, (/me/), (/one/), (/other/), (/one/), MPI_INFO_NULL, .false., &
                             comm ERROR)
  call MPI_Dist_graph_neighbors_count(comm, number, result, flag ERROR)
  CHECK(number == 1 .and. result == 1 .and. flag)
  call neighbours()
  call use_and_free(2)

  ! Groups.
  call MPI_Group_size(all, number ERROR)
  call MPI_Group_rank(all, rank ERROR)
  CHECK(number == 2 .and. rank == me)
  list(1) = me
  call MPI_Group_incl(all, 1, list, mine ERROR)
  call MPI_Group_excl(all, 1, list, others ERROR)
  list(1) = 0
  call MPI_Group_translate_ranks(others, 1, list, all, dims ERROR)
  CHECK(dims(1) == other)
  call MPI_Group_union(mine, others, made ERROR)
  call MPI_Group_compare(all, made, result ERROR)
  CHECK(result == merge(MPI_IDENT, MPI_SIMILAR, me == 0))
  call MPI_Group_free(made ERROR)
  CHECK(made == MPI_GROUP_NULL)
  call MPI_Group_intersection(all, mine, made ERROR)
  call MPI_Group_compare(mine, made, result ERROR)
  CHECK(result == MPI_IDENT)
  call MPI_Group_free(made ERROR)
  call MPI_Group_difference(all, mine, made ERROR)
  call MPI_Group_compare(others, made, result ERROR)
  CHECK(result == MPI_IDENT)
  call MPI_Group_free(made ERROR)
  ranges(:, 1) = (/1, 0, -1/)
  call MPI_Group_range_incl(all, 1, ranges, made ERROR)
  call MPI_Group_rank(made, rank ERROR)
  CHECK(rank == other)
  call MPI_Group_free(made ERROR)
  ranges(:, 1) = (/0, 0, 1/)
  call MPI_Group_range_excl(all, 1, ranges, made ERROR)
  call MPI_Group_size(made, number ERROR)
  CHECK(number == 1)
  call MPI_Group_free(made ERROR)
  call MPI_Group_free(mine ERROR)
  call MPI_Group_free(others ERROR)
  call MPI_Group_free(all ERROR)

contains

  subroutine use_and_free(count)
    integer :: count, total
    call MPI_Allreduce(one, total, 1, INT, MPI_SUM, comm ERROR)
    CHECK(total == count)
    call MPI_Comm_free(comm ERROR)
    CHECK(comm == MPI_COMM_NULL)
  end subroutine

  subroutine neighbours()
    integer :: sources(1), in_weights(1), targets(1), out_weights(1)
    call MPI_Dist_graph_neighbors(comm, 1, sources, in_weights, 1, targets, out_weights ERROR)
    CHECK(sources(1) == other .and. targets(1) == other .and. out_weights(1) == 1)
  end subroutine
end subroutine
