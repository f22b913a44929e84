! Two ranks: every form of sending, receiving and completing from Fortran. Message TAG has TAG
! doubles; most go from rank 0 to rank 1.
#include "fortran.inc"
program fortran_messages
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
  integer, parameter :: many = 20
  integer :: rank, other, error, i, found, indices(many), count, position
  logical :: flag
  double precision :: out(64), in(64), ins(64, many), attached(200)
  save out, in
  REQUEST :: requests(2 * many)
  STATUS(status)
  STATUSES(statuses, 2 * many)
  MESSAGE :: matched
  DATATYPE :: pair, absolute
  integer(kind=MPI_ADDRESS_KIND) :: address(1)
  COMM :: world
  DETACHED :: detached

  call MPI_Init(ONLY_ERROR)
  world = MPI_COMM_WORLD
  call MPI_Comm_rank(world, rank ERROR)
  other = 1 - rank
  do i = 1, 64
    out(i) = 100 * rank + i
  end do
  in = 0
  ins = 0

  if (rank == 0) then
    call MPI_Send(out, 1, MPI_DOUBLE_PRECISION, 1, 1, world ERROR)
    call MPI_Ssend(out, 2, MPI_DOUBLE_PRECISION, 1, 2, world ERROR)
    call MPI_Buffer_attach(attached, 1600 ERROR)
    call MPI_Bsend(out, 3, MPI_DOUBLE_PRECISION, 1, 3, world ERROR)
    call MPI_Buffer_detach(detached, count ERROR)
    call MPI_Isend(out, 4, MPI_DOUBLE_PRECISION, 1, 4, world, requests(1) ERROR)
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE ERROR)
  else
    call MPI_Recv(in, 64, MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, MPI_ANY_TAG, world, status ERROR)
    call say('receive', SOURCE_OF(status), TAG_OF(status), in(1))
    call MPI_Recv(in, 64, MPI_DOUBLE_PRECISION, 0, 2, world, MPI_STATUS_IGNORE ERROR)
    call say('receive', 0, 2, in(2))
    call MPI_Recv(in, 64, MPI_DOUBLE_PRECISION, 0, 3, world, status ERROR)
    call MPI_Get_count(status, MPI_DOUBLE_PRECISION, count ERROR)
    call say('count', count, TAG_OF(status), in(3))
    call MPI_Irecv(in, 64, MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, 4, world, requests(1) ERROR)
    call MPI_Wait(requests(1), status ERROR)
    call say('wait', SOURCE_OF(status), TAG_OF(status), in(4))
  end if

  ! Tags 5 to 10: twenty messages each, completed in another way each.
  do i = 5, 10
    call exchange_many(i)
  end do

  call MPI_Sendrecv(out, 11, MPI_DOUBLE_PRECISION, other, 11, in, 64, MPI_DOUBLE_PRECISION, other, &
                    11, world, status ERROR)
  call say('sendrecv', SOURCE_OF(status), TAG_OF(status), in(11))
  call MPI_Sendrecv_replace(in, 12, MPI_DOUBLE_PRECISION, other, 12, other, 12, world, &
                            MPI_STATUS_IGNORE ERROR)
  call say('replace', other, 12, in(1))

  ! Persistent: tag 13 one by one, tag 14 all at once.
  if (rank == 0) then
    call MPI_Send_init(out, 13, MPI_DOUBLE_PRECISION, 1, 13, world, requests(1) ERROR)
    call MPI_Send_init(out, 14, MPI_DOUBLE_PRECISION, 1, 14, world, requests(2) ERROR)
  else
    call MPI_Recv_init(in, 13, MPI_DOUBLE_PRECISION, 0, 13, world, requests(1) ERROR)
    call MPI_Recv_init(ins, 14, MPI_DOUBLE_PRECISION, 0, 14, world, requests(2) ERROR)
  end if
  do i = 1, 3
    call MPI_Start(requests(1) ERROR)
    call MPI_Wait(requests(1), status ERROR)
    call MPI_Startall(2, requests ERROR)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE ERROR)
  end do
  call MPI_Request_free(requests(1) ERROR)
  call MPI_Request_free(requests(2) ERROR)

  ! Probes: 15 and 16 matched, 17 and 18 not.
  if (rank == 0) then
    do i = 15, 18
      call MPI_Send(out, i, MPI_DOUBLE_PRECISION, 1, i, world ERROR)
    end do
  else
    call MPI_Mprobe(0, 15, world, matched, status ERROR)
    call MPI_Mrecv(in, 15, MPI_DOUBLE_PRECISION, matched, MPI_STATUS_IGNORE ERROR)
    call say('mrecv', SOURCE_OF(status), TAG_OF(status), in(15))
    flag = .false.
    do while (.not. flag)
      call MPI_Improbe(MPI_ANY_SOURCE, 16, world, flag, matched, MPI_STATUS_IGNORE ERROR)
    end do
    call MPI_Imrecv(in, 16, MPI_DOUBLE_PRECISION, matched, requests(1) ERROR)
    call MPI_Wait(requests(1), status ERROR)
    call say('imrecv', SOURCE_OF(status), TAG_OF(status), in(16))
    call MPI_Probe(0, 17, world, status ERROR)
    call MPI_Recv(in, 17, MPI_DOUBLE_PRECISION, 0, 17, world, MPI_STATUS_IGNORE ERROR)
    flag = .false.
    do while (.not. flag)
      call MPI_Iprobe(0, 18, world, flag, MPI_STATUS_IGNORE ERROR)
    end do
    call MPI_Recv(in, 18, MPI_DOUBLE_PRECISION, 0, 18, world, MPI_STATUS_IGNORE ERROR)
    call say('probed', 0, 18, in(18))
  end if

  ! Derived types: 20 doubles as pairs, 21 at an absolute address.
  call MPI_Type_contiguous(2, MPI_DOUBLE_PRECISION, pair ERROR)
  call MPI_Type_commit(pair ERROR)
  if (rank == 0) then
    call MPI_Get_address(out, address(1) ERROR)
  else
    call MPI_Get_address(in, address(1) ERROR)
  end if
  call MPI_Type_create_hindexed(1, (/21/), address, MPI_DOUBLE_PRECISION, absolute ERROR)
  call MPI_Type_commit(absolute ERROR)
  if (rank == 0) then
    call MPI_Send(out, 10, pair, 1, 20, world ERROR)
    call MPI_Send(MPI_BOTTOM, 1, absolute, 1, 21, world ERROR)
  else
    call MPI_Recv(in, 10, pair, 0, 20, world, status ERROR)
    call MPI_Recv(MPI_BOTTOM, 1, absolute, 0, 21, world, status ERROR)
    call say('bottom', 0, TAG_OF(status), in(21))
  end if
  call MPI_Type_free(pair ERROR)
  call MPI_Type_free(absolute ERROR)

  ! Nothing moves to nobody; a cancelled receive.
  call MPI_Send(out, 5, MPI_DOUBLE_PRECISION, MPI_PROC_NULL, 98, world ERROR)
  call MPI_Irecv(in, 1, MPI_DOUBLE_PRECISION, other, 99, world, requests(1) ERROR)
  call MPI_Cancel(requests(1) ERROR)
  call MPI_Wait(requests(1), status ERROR)
  call MPI_Test_cancelled(status, flag ERROR)
  call say('cancelled', merge(1, 0, flag), 99, 0d0)
  call MPI_Barrier(world ERROR)
  call MPI_Finalize(ONLY_ERROR)

contains

  subroutine say(what, a, b, value)
    character(len=*), intent(in) :: what
    integer, intent(in) :: a, b
    double precision, intent(in) :: value
    write (*, '(i0,1x,a,1x,i0,1x,i0,1x,f8.1)') rank, what, a, b, value
  end subroutine

  subroutine exchange_many(tag)
    integer, intent(in) :: tag
    integer :: k, left
    do k = 1, many
      if (rank == 0) then
        call MPI_Isend(out, tag, MPI_DOUBLE_PRECISION, 1, tag, world, requests(k) ERROR)
      else
        call MPI_Irecv(ins(1, k), 64, MPI_DOUBLE_PRECISION, 0, tag, world, requests(k) ERROR)
      end if
    end do
    left = many
    do while (left > 0)
      select case (tag)
      case (5)
        call MPI_Waitall(many, requests, MPI_STATUSES_IGNORE ERROR)
        left = 0
      case (6)
        call MPI_Waitall(many, requests, statuses ERROR)
        left = 0
      case (7)
        call MPI_Waitany(many, requests, position, MPI_STATUS_IGNORE ERROR)
        if (position < 0 .or. position > many) stop 3  ! MPICH 4.0's mpi_f08 counts from 0
        left = left - 1
      case (8)
        call MPI_Waitsome(many, requests, found, indices, statuses ERROR)
        left = left - found
      case (9)
        call MPI_Testany(many, requests, position, flag, status ERROR)
        if (flag) left = left - 1
        if (left > 0) call MPI_Testsome(many, requests, found, indices, MPI_STATUSES_IGNORE ERROR)
        if (left > 0) left = left - found
      case (10)
        call MPI_Test(requests(left), flag, MPI_STATUS_IGNORE ERROR)
        if (.not. flag) call MPI_Testany(1, requests(left:left), position, flag, status ERROR)
        if (flag) left = left - 1
        if (left == 5) then
          flag = .false.
          do while (.not. flag)
            call MPI_Testall(5, requests, flag, statuses ERROR)
          end do
          left = 0
        end if
      end select
    end do
    call say('many', many, tag, sum(ins(tag, 1:many)))
  end subroutine
end program
