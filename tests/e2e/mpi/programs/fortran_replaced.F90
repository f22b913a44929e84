! Two ranks: what replaced.c does by MPI_Start (tag 1) and MPI_Startall (tags 2 and 3).
#include "fortran.inc"
program fortran_replaced
#if LANGUAGE == 3
  use mpi_f08
  use iso_c_binding, only: c_ptr
#elif LANGUAGE == 2
  use mpi
#endif
  implicit none
#if LANGUAGE == 1
  include 'mpif.h'
#endif
  integer, parameter :: doubles = 8750, room = 2 * 1024 * 1024
  integer :: rank, error, i, tag, bytes, empty(1)
  double precision :: out(doubles), in(doubles)
  double precision, allocatable :: attached(:)
  save out, in
  COMM :: world
  REQUEST :: requests(3)
  STATUSES(statuses, 3)
  DETACHED :: detached

  call MPI_Init(ONLY_ERROR)
  world = MPI_COMM_WORLD
  call MPI_Comm_rank(world, rank ERROR)
  out = 1
  if (rank == 0) then
    allocate(attached(room))
    call MPI_Buffer_attach(attached, 8 * room ERROR)
    do tag = 1, 3
      call MPI_Bsend_init(out, doubles, MPI_DOUBLE_PRECISION, 1, tag, world, requests(tag) ERROR)
    end do
    do i = 1, 5
      call MPI_Start(requests(1) ERROR)
      call MPI_Wait(requests(1), MPI_STATUS_IGNORE ERROR)
      call MPI_Startall(2, requests(2:3) ERROR)
      call MPI_Waitall(2, requests(2:3), statuses ERROR)
    end do
    call MPI_Send(empty, 0, MPI_INTEGER, 1, 100, world ERROR)
    call MPI_Buffer_detach(detached, bytes ERROR)
    do tag = 1, 3
      call MPI_Request_free(requests(tag) ERROR)
    end do
  else
    call MPI_Recv(empty, 0, MPI_INTEGER, 0, 100, world, MPI_STATUS_IGNORE ERROR)
    do tag = 1, 3
      do i = 1, 5
        call MPI_Recv(in, doubles, MPI_DOUBLE_PRECISION, 0, tag, world, MPI_STATUS_IGNORE ERROR)
      end do
    end do
  end if
  call MPI_Finalize(ONLY_ERROR)
end program
