! Four ranks: communicators with names, collectives, and what has strings, logicals and callbacks,
! from Fortran. Blocks have 3 doubles. `fortran_groups FILE`
#include "fortran.inc"
program fortran_groups
#if LANGUAGE == 3
  use mpi_f08
#elif LANGUAGE == 2
  use mpi
#endif
  use iso_c_binding, only: c_ptr
  implicit none
#if LANGUAGE == 1
  include 'mpif.h'
#endif
  integer :: rank, error, i, provided, length, class, edges(4)
  integer :: counts(4), starts(4), moved(4)
  logical :: flag, periods(2)
  double precision :: a(16), b(16)
  character(len=MPI_MAX_OBJECT_NAME) :: name
  character(len=4000) :: path
  double precision, allocatable :: absent(:)
  COMM :: world, copy, line, grid, row, place, later, remote, merged, sink
  REQUEST :: requests(2)
  STATUS(status)
  DATATYPE :: types(4)
  OPERATION :: operation
  WINDOW :: window
  FILE_HANDLE :: file
  INFO :: hints
  integer(kind=MPI_ADDRESS_KIND) :: bytes
  integer(kind=MPI_OFFSET_KIND) :: offset
  external add_doubles
#if LANGUAGE == 1
  integer(kind=MPI_ADDRESS_KIND) :: memory
#else
  type(c_ptr) :: memory
#endif

  call MPI_Init_thread(MPI_THREAD_FUNNELED, provided ERROR)
  world = MPI_COMM_WORLD
  call MPI_Comm_rank(world, rank ERROR)
  call get_command_argument(1, path)
  a = rank + 1
  b = 0

  ! Communicators.
  call MPI_Comm_dup(world, copy ERROR)
  call MPI_Comm_set_name(copy, '  a copy  ' ERROR)
  call MPI_Comm_get_name(copy, name, length ERROR)
  call say(name(1:length), length)
  call MPI_Comm_split(world, rank / 2, rank, line ERROR)
  call MPI_Comm_set_name(line, 'line' ERROR)
  periods = (/.true., .false./)
  call MPI_Cart_create(copy, 2, (/2, 2/), periods, .false., grid ERROR)
  call MPI_Comm_set_name(grid, 'grid' ERROR)
  call MPI_Cart_shift(grid, 0, 1, edges(1), edges(2) ERROR)
  call MPI_Cart_shift(grid, 1, 1, edges(3), edges(4) ERROR)
  call say('first', edges(2))
  call MPI_Sendrecv(a, 3, MPI_DOUBLE_PRECISION, edges(4), 7, b, 3, MPI_DOUBLE_PRECISION, edges(3), &
                    7, grid, MPI_STATUS_IGNORE ERROR)
  call MPI_Cart_sub(grid, (/.true., .false./), row ERROR)
  call MPI_Comm_set_name(row, 'row' ERROR)
  call MPI_Comm_idup(world, later, requests(1) ERROR)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE ERROR)
  call MPI_Comm_set_name(later, 'later' ERROR)
  call MPI_Intercomm_create(line, 0, world, merge(2, 0, rank < 2), 5, remote ERROR)
  call MPI_Comm_set_name(remote, 'remote' ERROR)
  call MPI_Intercomm_merge(remote, rank >= 2, merged ERROR)
  call MPI_Comm_set_name(merged, 'merged' ERROR)
  call MPI_Comm_test_inter(remote, flag ERROR)
  call say('inter', merge(1, 0, flag))

  ! Collectives.
  do i = 1, 4
    counts(i) = i
    starts(i) = (i - 1) * 4
    types(i) = MPI_DOUBLE_PRECISION
  end do
  call MPI_Barrier(world ERROR)
  call MPI_Bcast(a, 3, MPI_DOUBLE_PRECISION, 1, world ERROR)
  call say('bcast', nint(a(3)))
  call MPI_Gather(a, 3, MPI_DOUBLE_PRECISION, b, 3, MPI_DOUBLE_PRECISION, 2, world ERROR)
  call MPI_Gatherv(a, rank + 1, MPI_DOUBLE_PRECISION, b, counts, starts, MPI_DOUBLE_PRECISION, 2, &
                   world ERROR)
  call MPI_Scatter(a, 3, MPI_DOUBLE_PRECISION, b, 3, MPI_DOUBLE_PRECISION, 3, world ERROR)
  call MPI_Allgather(a, 3, MPI_DOUBLE_PRECISION, b, 3, MPI_DOUBLE_PRECISION, world ERROR)
  call MPI_Allgatherv(a, rank + 1, MPI_DOUBLE_PRECISION, b, counts, starts, MPI_DOUBLE_PRECISION, &
                      world ERROR)
  call MPI_Alltoall(a, 3, MPI_DOUBLE_PRECISION, b, 3, MPI_DOUBLE_PRECISION, world ERROR)
  moved = 2
  do i = 1, 4
    starts(i) = (i - 1) * 16
  end do
  call MPI_Alltoallw(a, moved, starts, types, b, moved, starts, types, world ERROR)
  call say('alltoallw', nint(sum(b(1:8))))
  call MPI_Allreduce(a, b, 3, MPI_DOUBLE_PRECISION, MPI_SUM, world ERROR)
  call say('allreduce', nint(b(1)))
  call MPI_Reduce(a, b, 3, MPI_DOUBLE_PRECISION, MPI_MAX, 0, world ERROR)
  call MPI_Reduce_scatter(a, b, counts, MPI_DOUBLE_PRECISION, MPI_SUM, world ERROR)
  call MPI_Scan(a, b, 3, MPI_DOUBLE_PRECISION, MPI_SUM, world ERROR)
  call MPI_Exscan(a, b, 3, MPI_DOUBLE_PRECISION, MPI_SUM, world ERROR)
  call MPI_Ibcast(a, 3, MPI_DOUBLE_PRECISION, 1, world, requests(1) ERROR)
  call MPI_Iallreduce(a, b, 3, MPI_DOUBLE_PRECISION, MPI_SUM, world, requests(2) ERROR)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE ERROR)

  call MPI_Comm_dup(world, place ERROR)
  call MPI_Comm_set_name(place, 'in place' ERROR)
  call MPI_Allreduce(MPI_IN_PLACE, b, 3, MPI_DOUBLE_PRECISION, MPI_SUM, place ERROR)
  call say('in place', nint(b(1)))
  if (rank == 2) then
    call MPI_Gather(MPI_IN_PLACE, 3, MPI_DOUBLE_PRECISION, b, 3, MPI_DOUBLE_PRECISION, 2, place ERROR)
  else
    call MPI_Gather(a, 3, MPI_DOUBLE_PRECISION, b, 3, MPI_DOUBLE_PRECISION, 2, place ERROR)
  end if
  ! To the first from all others: it has nothing to send from.
  call MPI_Comm_dup(world, sink ERROR)
  call MPI_Comm_set_name(sink, 'sink' ERROR)
  moved = 0
  starts = (/0, 0, 2, 4/)
  if (rank == 0) then
    call MPI_Alltoallv(absent, moved, starts, MPI_DOUBLE_PRECISION, b, (/0, 2, 2, 2/), starts, &
                       MPI_DOUBLE_PRECISION, sink ERROR)
  else
    moved(1) = 2
    call MPI_Alltoallv(a, moved, starts, MPI_DOUBLE_PRECISION, absent, (/0, 0, 0, 0/), starts, &
                       MPI_DOUBLE_PRECISION, sink ERROR)
  end if
  call say('sink', nint(sum(b(1:6))))
  call MPI_Op_create(add_doubles, .true., operation ERROR)
  call MPI_Reduce(a, b, 3, MPI_DOUBLE_PRECISION, operation, 0, line ERROR)
  call say('own operation', nint(b(1)))
  call MPI_Op_free(operation ERROR)

  ! Strings, windows and files.
  call MPI_Info_create(hints ERROR)
  call MPI_Info_set(hints, 'key', 'a value' ERROR)
  call MPI_Info_get(hints, 'key', MPI_MAX_OBJECT_NAME, name, flag ERROR)
  call say(trim(name), merge(1, 0, flag))
  call MPI_Info_free(hints ERROR)
  bytes = 128
  call MPI_Win_allocate(bytes, 8, MPI_INFO_NULL, world, memory, window ERROR)
  call MPI_Win_set_name(window, 'window' ERROR)
  call MPI_Win_fence(0, window ERROR)
  bytes = 2
  a(1) = rank
  call MPI_Put(a, 1, MPI_DOUBLE_PRECISION, mod(rank + 1, 4), bytes, 1, MPI_DOUBLE_PRECISION, &
               window ERROR)
  call MPI_Win_fence(0, window ERROR)
  call MPI_Get(b(3), 1, MPI_DOUBLE_PRECISION, rank, bytes, 1, MPI_DOUBLE_PRECISION, window ERROR)
  call MPI_Win_fence(0, window ERROR)
  call MPI_Win_free(window ERROR)
  call say('put', nint(b(3)))
  call MPI_File_open(world, '  ' // trim(path), MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, file ERROR)
  offset = 24 * rank
  call MPI_File_write_at_all(file, offset, a, 3, MPI_DOUBLE_PRECISION, status ERROR)
  call MPI_File_sync(file ERROR)
  call MPI_Barrier(world ERROR)
  call MPI_File_sync(file ERROR)
  call MPI_File_read_at(file, offset, b, 1, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE ERROR)
  call MPI_File_set_view(file, offset, MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, 'native', &
                         MPI_INFO_NULL ERROR)
  offset = 1
  call MPI_File_seek(file, offset, MPI_SEEK_SET ERROR)
  call MPI_File_iread(file, b(2), 2, MPI_DOUBLE_PRECISION, requests(1) ERROR)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE ERROR)
  call MPI_File_close(file ERROR)
  call say('file', nint(b(1)))

  ! An error that the program sees, and a pause.
  call MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN ERROR)
#if LANGUAGE == 3
  call MPI_Send(a, 1, MPI_DOUBLE_PRECISION, 77, 1, world)
  call MPI_Send(a, 1, MPI_DOUBLE_PRECISION, 77, 1, world, error)
#else
  call MPI_Send(a, 1, MPI_DOUBLE_PRECISION, 77, 1, world, error)
  call MPI_Send(a, 1, MPI_DOUBLE_PRECISION, 77, 1, world, error)
#endif
  call MPI_Error_class(error, class, i)
  call say('rank error', merge(1, 0, class == MPI_ERR_RANK))
  call MPI_Barrier(world ERROR)
  call MPI_Pcontrol(0)
  call MPI_Barrier(world ERROR)
  call MPI_Allreduce(a, b, 3, MPI_DOUBLE_PRECISION, MPI_SUM, world ERROR)
  call MPI_Pcontrol(1)
  if (MPI_Wtime() < 0 .or. MPI_Wtick() < 0) stop 4

  call MPI_Comm_free(copy ERROR)
  call MPI_Comm_free(line ERROR)
  call MPI_Comm_free(grid ERROR)
  call MPI_Comm_free(row ERROR)
  call MPI_Comm_free(later ERROR)
  call MPI_Comm_free(remote ERROR)
  call MPI_Comm_free(merged ERROR)
  call MPI_Comm_free(place ERROR)
  call MPI_Comm_free(sink ERROR)
  call MPI_Finalize(ONLY_ERROR)

contains

  subroutine say(what, value)
    character(len=*), intent(in) :: what
    integer, intent(in) :: value
    write (*, '(i0,1x,a,1x,i0)') rank, what, value
  end subroutine
end program

subroutine add_doubles(in, inout, count, type)
#if LANGUAGE == 3
  use mpi_f08, only: MPI_Datatype
#endif
  implicit none
  integer :: count
  double precision :: in(count), inout(count)
  DATATYPE :: type
  inout = inout + in
end subroutine
