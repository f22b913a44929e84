! Every form of a message, of one integer or two; the tag is its number.
#include "every.inc"
subroutine messages(me, other)
  USE_MPI
  implicit none
  INCLUDE_MPI
  integer :: me, other, error, i, both, length
  integer :: out(4), in(4)
  logical :: flag
  REQUEST :: requests(4)
  REQUEST :: request
  MESSAGE :: message
  STATUS(status)
  STATUSES(statuses, 4)
  character(len=1), save :: buffer(65536)
  DETACHED :: detached
  LARGE_KIND :: place(1)
  DATATYPE :: absolute
  integer, asynchronous, volatile :: there

  out = (/11, 12, 13, 14/)
  call MPI_Buffer_attach(buffer, 65536 ERROR)
  if (me == 0) then
    call MPI_Send(out, 2, INT, 1, 1, W ERROR)
    call MPI_Ssend(out, 2, INT, 1, 2, W ERROR)
    call MPI_Bsend(out, 2, INT, 1, 3, W ERROR)
    call MPI_Send(out, 2, INT, MPI_PROC_NULL, 3, W ERROR)
  else
    do i = 1, 3
      call MPI_Recv(in, 4, INT, 0, i, W, status ERROR)
      call check_message(i)
    end do
    call MPI_Irecv(in, 4, INT, 0, 4, W, request ERROR)
  end if
  call MPI_Barrier(W ERROR)
  if (me == 0) call MPI_Rsend(out, 2, INT, 1, 4, W ERROR)
  if (me == 1) call MPI_Wait(request, status ERROR)
  if (me == 1) call check_message(4)

  if (me == 1) call MPI_Irecv(in, 4, INT, 0, 5, W, request ERROR)
  call MPI_Barrier(W ERROR)
  if (me == 0) then
    call MPI_Irsend(out, 2, INT, 1, 5, W, requests(1) ERROR)
    call MPI_Isend(out, 2, INT, 1, 6, W, requests(2) ERROR)
    call MPI_Issend(out, 2, INT, 1, 7, W, requests(3) ERROR)
    call MPI_Ibsend(out, 2, INT, 1, 8, W, requests(4) ERROR)
    call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE ERROR)
  else
    call MPI_Wait(request, status ERROR)
    call check_message(5)
    do i = 6, 8
      call MPI_Recv(in, 4, INT, 0, i, W, status ERROR)
      call check_message(i)
    end do
  end if

  call MPI_Sendrecv(out, 2, INT, other, 9, in, 4, INT, other, 9, W, status ERROR)
  call check_message(9)
  both = me
  call MPI_Sendrecv_replace(both, 1, INT, other, 10, other, 10, W, status ERROR)
  CHECK(both == other .and. SOURCE_OF(status) == other)

  if (me == 0) then
    do i = 13, 16
      call MPI_Send(out, 2, INT, 1, i, W ERROR)
    end do
  else
    call MPI_Probe(0, 13, W, status ERROR)
    call MPI_Recv(in, 4, INT, 0, 13, W, MPI_STATUS_IGNORE ERROR)
    flag = .false.
    do while (.not. flag)
      call MPI_Iprobe(MPI_ANY_SOURCE, 14, W, flag, status ERROR)
    end do
    CHECK(SOURCE_OF(status) == 0 .and. TAG_OF(status) == 14)
    call MPI_Recv(in, 4, INT, 0, 14, W, status ERROR)
    call MPI_Mprobe(0, 15, W, message, status ERROR)
    call MPI_Mrecv(in, 4, INT, message, status ERROR)
    call check_message(15)
    flag = .false.
    do while (.not. flag)
      call MPI_Improbe(0, MPI_ANY_TAG, W, flag, message, status ERROR)
    end do
    call MPI_Imrecv(in, 4, INT, message, request ERROR)
    call MPI_Wait(request, status ERROR)
    call check_message(16)
  end if

  ! Persistent.
  if (me == 0) then
    call MPI_Send_init(out, 2, INT, 1, 17, W, requests(1) ERROR)
    call MPI_Ssend_init(out, 2, INT, 1, 18, W, requests(2) ERROR)
    call MPI_Bsend_init(out, 2, INT, 1, 19, W, requests(3) ERROR)
    call MPI_Rsend_init(out, 2, INT, 1, 20, W, requests(4) ERROR)
  else
    call MPI_Recv_init(in, 4, INT, 0, 20, W, requests(1) ERROR)
    call MPI_Start(requests(1) ERROR)
  end if
  call MPI_Barrier(W ERROR)
  if (me == 0) then
    call MPI_Startall(4, requests ERROR)
    call MPI_Waitall(4, requests, statuses ERROR)
  else
    call MPI_Wait(requests(1), status ERROR)
    call check_message(20)
    do i = 17, 19
      call MPI_Recv(in, 4, INT, 0, i, W, status ERROR)
      call check_message(i)
    end do
  end if
  do i = 1, merge(4, 1, me == 0)
    call MPI_Request_free(requests(i) ERROR)
  end do

  ! By its absolute address.
  there = 100 + me
  call MPI_Get_address(there, place(1) ERROR)
  call MPI_Type_create_hindexed_block(1, 1, place, INT, absolute ERROR)
  call MPI_Type_commit(absolute ERROR)
  call MPI_Sendrecv_replace(MPI_BOTTOM, 1, absolute, other, 22, other, 22, W, MPI_STATUS_IGNORE ERROR)
  CHECK(there == 100 + other)
  call MPI_Type_free(absolute ERROR)
  call MPI_Buffer_detach(detached, length ERROR)
  CHECK(length == 65536)
#ifdef HAS_MPI_4
  call partitioned()
#endif

contains

  subroutine check_message(tag)
    integer :: tag, count
    call MPI_Get_count(status, INT, count ERROR)
    CHECK(count == 2 .and. TAG_OF(status) == tag .and. in(1) == 11 .and. in(2) == 12)
    CHECK(SOURCE_OF(status) == 0 .or. me == 0)
    in = 0
  end subroutine

#ifdef HAS_MPI_4
  subroutine partitioned()
    integer(kind=MPI_COUNT_KIND) :: one
    integer :: rest(2)
    one = 1
    rest = (/2, 3/)
    call MPI_Isendrecv(out, 2, INT, other, 11, in, 4, INT, other, 11, W, request ERROR)
    call MPI_Wait(request, MPI_STATUS_IGNORE ERROR)
    CHECK(in(2) == 12)
    call MPI_Isendrecv_replace(both, 1, INT, other, 12, other, 12, W, request ERROR)
    call MPI_Wait(request, MPI_STATUS_IGNORE ERROR)
    CHECK(both == me)
    in = -1
    if (me == 0) then
      call MPI_Psend_init(out, 4, one, INT, 1, 21, W, MPI_INFO_NULL, request ERROR)
      call MPI_Start(request ERROR)
      call MPI_Pready(0, request ERROR)
      call MPI_Pready_range(1, 1, request ERROR)
      call MPI_Pready_list(2, rest, request ERROR)
    else
      call MPI_Precv_init(in, 4, one, INT, 0, 21, W, MPI_INFO_NULL, request ERROR)
      call MPI_Start(request ERROR)
      flag = .false.
      do while (.not. flag)
        call MPI_Parrived(request, 3, flag ERROR)
      end do
    end if
    call MPI_Wait(request, MPI_STATUS_IGNORE ERROR)
    if (me == 1) then
      CHECK(all(in == out))
    end if
    call MPI_Request_free(request ERROR)
  end subroutine
#endif
end subroutine
