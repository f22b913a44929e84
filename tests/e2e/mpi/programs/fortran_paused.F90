! Two ranks: what paused.c does by MPI_Wait and with a persistent receive.
#include "fortran.inc"
program fortran_paused
#if LANGUAGE == 3
  use mpi_f08
#elif LANGUAGE == 2
  use mpi
#endif
  implicit none
#if LANGUAGE == 1
  include 'mpif.h'
#endif
  integer :: rank, error, i, empty(1), in
  save in
  COMM :: world
  REQUEST :: first, second

  call MPI_Init(ONLY_ERROR)
  world = MPI_COMM_WORLD
  call MPI_Comm_rank(world, rank ERROR)
  if (rank == 0) then
    do i = 1, 4
      call MPI_Recv(empty, 0, MPI_INTEGER, 1, 100, world, MPI_STATUS_IGNORE ERROR)
      call MPI_Send(i, 1, MPI_INTEGER, 1, i, world ERROR)
    end do
  else
    call MPI_Irecv(in, 1, MPI_INTEGER, 0, 1, world, first ERROR)
    call ready()
    call MPI_Pcontrol(0)
    call MPI_Wait(first, MPI_STATUS_IGNORE ERROR)
    call MPI_Irecv(in, 1, MPI_INTEGER, 0, 2, world, second ERROR)
    call ready()
    call MPI_Pcontrol(1)
    call MPI_Wait(second, MPI_STATUS_IGNORE ERROR)
    call MPI_Recv_init(in, 1, MPI_INTEGER, 0, 3, world, first ERROR)
    call MPI_Start(first ERROR)
    call ready()
    call MPI_Pcontrol(0)
    call MPI_Wait(first, MPI_STATUS_IGNORE ERROR)
    call MPI_Request_free(first ERROR)
    call MPI_Recv_init(in, 1, MPI_INTEGER, 0, 4, world, second ERROR)
    call MPI_Pcontrol(1)
    call MPI_Start(second ERROR)
    call ready()
    call MPI_Wait(second, MPI_STATUS_IGNORE ERROR)
    call MPI_Request_free(second ERROR)
    if (in /= 4) stop 3
  end if
  call MPI_Finalize(ONLY_ERROR)

contains

  subroutine ready()
    call MPI_Send(empty, 0, MPI_INTEGER, 0, 100, world ERROR)
  end subroutine
end program
