! `every_LANGUAGE FOLDER [abort]`, on two ranks; `every_LANGUAGE child`, spawned by it. Says nothing
! but "ok".
#include "every.inc"
program every
  USE_MPI
  implicit none
  INCLUDE_MPI
  integer :: me, count, error, level, length, version, subversion
  logical :: flag
  double precision :: start
  character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: text
  character(len=200) :: folder, mode
  call get_command_argument(1, folder)
  call get_command_argument(2, mode)
  if (folder == 'child') call be_child()
  if (mode == 'abort') call abort_early()
  call MPI_Initialized(flag ERROR)
  CHECK(.not. flag)
  call MPI_Finalized(flag ERROR)
  CHECK(.not. flag)
  call MPI_Init(ONLY_ERROR)
  call MPI_Initialized(flag ERROR)
  CHECK(flag)
  call MPI_Comm_rank(W, me ERROR)
  call MPI_Comm_size(W, count ERROR)
  CHECK(count == 2)
  call MPI_Get_version(version, subversion ERROR)
  CHECK(version == MPI_VERSION .and. subversion == MPI_SUBVERSION)
  call MPI_Get_library_version(text, length ERROR)
  CHECK(length >= len_trim(text) .and. len_trim(text) > 0)
  call MPI_Get_processor_name(text, length ERROR)
  CHECK(length > 0 .and. len_trim(text(1:length)) == length)
  call MPI_Query_thread(level ERROR)
  CHECK(level >= MPI_THREAD_SINGLE .and. level <= MPI_THREAD_MULTIPLE)
  call MPI_Is_thread_main(flag ERROR)
  CHECK(flag)
  start = MPI_Wtime()
  CHECK(MPI_Wtick() > 0 .and. MPI_Wtime() >= start)
  call MPI_Pcontrol(1)
  call messages(me, 1 - me)
  call completion(me, 1 - me)
  call collectives(me, 1 - me)
  call communicators(me, 1 - me)
  call datatypes(me, 1 - me)
  call objects(me, 1 - me)
  call windows(me, 1 - me)
  call files(me, 1 - me, folder)
  call removed(me)
  call large_counts(me)
  call sessions(me, 1 - me)
  call processes(me, 1 - me)
  call MPI_Finalize(ONLY_ERROR)
  call MPI_Finalized(flag ERROR)
  CHECK(flag)
  write (*, '(a)') 'ok'

contains

  subroutine be_child()
    COMM :: parents
    integer :: value
    call MPI_Init_thread(MPI_THREAD_SINGLE, level ERROR)
    call MPI_Comm_get_parent(parents ERROR)
    CHECK(parents /= MPI_COMM_NULL)
    call MPI_Bcast(value, 1, INT, 0, parents ERROR)
    CHECK(value == 17)
    call MPI_Comm_disconnect(parents ERROR)
    call MPI_Finalize(ONLY_ERROR)
    stop
  end subroutine

  subroutine abort_early()
    call MPI_Init_thread(MPI_THREAD_FUNNELED, level ERROR)
    call MPI_Comm_rank(W, me ERROR)
    call MPI_Barrier(W ERROR)
    if (me == 1) call MPI_Abort(W, 7 ERROR)
    call MPI_Probe(1, 0, W, MPI_STATUS_IGNORE ERROR)
  end subroutine
end program

subroutine fail(file, line)
  implicit none
  character(len=*) :: file
  integer :: line
  write (0, '(a,a,i0,a)') file, ':', line, ': failed'
  call exit(99)
end subroutine
