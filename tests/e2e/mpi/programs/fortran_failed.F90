! One rank: completions that fail, and others beside them that do not. Each form has two receives,
! of which the second (tags 12, 22, ...) has room for half of its message. That one comes first:
! Open MPI 4 takes no notice otherwise.
#include "fortran.inc"
program fortran_failed
#if LANGUAGE == 3
  use mpi_f08
#elif LANGUAGE == 2
  use mpi
#endif
  implicit none
#if LANGUAGE == 1
  include 'mpif.h'
#endif
  integer :: error, form, found, tag, indices(2), out(2), in(2)
  save out, in
  logical :: flag
  COMM :: self
  REQUEST :: requests(2), sent
  STATUSES(statuses, 2)

  call MPI_Init(ONLY_ERROR)
  self = MPI_COMM_SELF
  call MPI_Comm_set_errhandler(self, MPI_ERRORS_RETURN ERROR)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN ERROR)
  out = 7
  call succeed()
  do form = 1, 6
    tag = 10 * form
    call MPI_Isend(out, 2, MPI_INTEGER, 0, tag + 2, self, sent ERROR)
    call MPI_Irecv(in(1), 1, MPI_INTEGER, 0, tag + 1, self, requests(1) ERROR)
    call MPI_Irecv(in(2), 1, MPI_INTEGER, 0, tag + 2, self, requests(2) ERROR)
    select case (form)
    case (1)
      call MPI_Wait(requests(2), MPI_STATUS_IGNORE ERROR)
    case (2)
      call MPI_Waitany(2, requests, found, MPI_STATUS_IGNORE ERROR)
    case (3)
      call MPI_Waitsome(2, requests, found, indices, statuses ERROR)
    case (4)
      call MPI_Testsome(2, requests, found, indices, MPI_STATUSES_IGNORE ERROR)
    case (5)
      call MPI_Test(requests(2), flag, MPI_STATUS_IGNORE ERROR)
    case (6)
      call MPI_Send(out, 1, MPI_INTEGER, 0, tag + 1, self ERROR)
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE ERROR)
    end select
    if (form < 6) then
      call MPI_Send(out, 1, MPI_INTEGER, 0, tag + 1, self ERROR)
      call MPI_Wait(requests(1), MPI_STATUS_IGNORE ERROR)
    end if
    call MPI_Wait(sent, MPI_STATUS_IGNORE ERROR)
  end do
  call MPI_Finalize(ONLY_ERROR)

contains

  ! Statuses that say so stay where they are.
  subroutine succeed()
    integer :: k
    do k = 1, 2
      call MPI_Irecv(in(k), 1, MPI_INTEGER, 0, k, self, requests(k) ERROR)
      call MPI_Send(out, 1, MPI_INTEGER, 0, k, self ERROR)
    end do
    call MPI_Waitall(2, requests, statuses ERROR)
  end subroutine
end program
