! Two ranks and one window: transfers, locks and epochs from Fortran.
#include "fortran.inc"
program fortran_windows
#if LANGUAGE == 3
  use mpi_f08
#elif LANGUAGE == 2
  use mpi
#endif
  implicit none
#if LANGUAGE == 1
  include 'mpif.h'
#endif
  integer :: rank, other, error
  double precision, asynchronous :: memory(16), own(8), got(8)
  integer(kind=MPI_ADDRESS_KIND) :: bytes, place
  WINDOW :: window
  REQUEST :: request
  GROUP :: world, peer

  call MPI_Init(ONLY_ERROR)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank ERROR)
  other = 1 - rank
  memory = 0
  own = rank + 1
  got = 0
  bytes = 128
  call MPI_Win_create(memory, bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, window ERROR)
  call MPI_Win_set_name(window, 'made  ' ERROR)
  call MPI_Win_fence(0, window ERROR)
  place = 0
  call MPI_Put(own, 5, MPI_DOUBLE_PRECISION, other, place, 5, MPI_DOUBLE_PRECISION, window ERROR)
  call MPI_Win_fence(0, window ERROR)
  if (memory(5) /= other + 1) stop 1
  call MPI_Get(got, 3, MPI_DOUBLE_PRECISION, other, place, 3, MPI_DOUBLE_PRECISION, window ERROR)
  call MPI_Win_fence(0, window ERROR)
  if (got(3) /= rank + 1) stop 2

  place = 8
  call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, other, 0, window ERROR)
  call MPI_Accumulate(own, 1, MPI_DOUBLE_PRECISION, other, place, 1, MPI_DOUBLE_PRECISION, MPI_SUM, &
                      window ERROR)
  place = 9
  call MPI_Rput(own, 1, MPI_DOUBLE_PRECISION, other, place, 1, MPI_DOUBLE_PRECISION, window, &
                request ERROR)
  call MPI_Wait(request, MPI_STATUS_IGNORE ERROR)
  call MPI_Win_flush(other, window ERROR)
  place = 8
  call MPI_Get_accumulate(own, 1, MPI_DOUBLE_PRECISION, got, 1, MPI_DOUBLE_PRECISION, other, place, &
                          1, MPI_DOUBLE_PRECISION, MPI_NO_OP, window ERROR)
  call MPI_Win_unlock(other, window ERROR)
  if (got(1) /= rank + 1) stop 3

  call MPI_Comm_group(MPI_COMM_WORLD, world ERROR)
  call MPI_Group_incl(world, 1, (/other/), peer ERROR)
  call MPI_Win_post(peer, 0, window ERROR)
  call MPI_Win_start(peer, 0, window ERROR)
  call MPI_Win_complete(window ERROR)
  call MPI_Win_wait(window ERROR)
  call MPI_Group_free(peer ERROR)
  call MPI_Group_free(world ERROR)
  call MPI_Win_free(window ERROR)
  call MPI_Finalize(ONLY_ERROR)
end program
