! Every way to wait for requests and to ask about them.
#include "every.inc"
subroutine completion(me, other)
  USE_MPI
  implicit none
  INCLUDE_MPI
  integer :: me, other, error, i, index, count, done
  integer :: out(3), in(3), indices(3)
  integer(kind=MPI_COUNT_KIND) :: many
  logical :: flag
  LARGE_KIND :: state
  REQUEST :: requests(3)
  STATUS(status)
  STATUSES(statuses, 3)
  external on_query, on_free, on_cancel

  call begin()
  do i = 1, 3
    call MPI_Wait(requests(i), status ERROR)
    call check_one(i)
  end do
  call begin()
  call MPI_Waitall(3, requests, statuses ERROR)
  call check_all()
  call begin()
  do i = 1, 3
    call MPI_Waitany(3, requests, index, status ERROR)
    call check_one(index + 1 - FIRST_INDEX)
  end do
  call MPI_Waitany(3, requests, index, MPI_STATUS_IGNORE ERROR)
  CHECK(index == MPI_UNDEFINED .or. index == MPI_UNDEFINED + 1)  ! MPICH 4.0 in mpif.h
  call begin()
  done = 0
  do while (done < 3)
    call MPI_Waitsome(3, requests, count, indices, MPI_STATUSES_IGNORE ERROR)
    done = done + count
  end do
  call check_all()

  call begin()
  do i = 1, 3
    flag = .false.
    do while (.not. flag)
      call MPI_Test(requests(i), flag, status ERROR)
    end do
    call check_one(i)
  end do
  call begin()
  flag = .false.
  do while (.not. flag)
    call MPI_Testall(3, requests, flag, statuses ERROR)
  end do
  call check_all()
  call begin()
  done = 0
  do while (done < 3)
    call MPI_Testany(3, requests, index, flag, status ERROR)
    if (flag) call check_one(index + 1 - FIRST_INDEX)
    if (flag) done = done + 1
  end do
  call begin()
  done = 0
  do while (done < 3)
    call MPI_Testsome(3, requests, count, indices, statuses ERROR)
    done = done + count
  end do
  call check_all()
  call begin()
  flag = .false.
  do while (.not. flag)
    call MPI_Request_get_status(requests(1), flag, status ERROR)
  end do
  CHECK(TAG_OF(status) == 1 .and. requests(1) /= MPI_REQUEST_NULL)
  call MPI_Waitall(3, requests, MPI_STATUSES_IGNORE ERROR)

  call MPI_Irecv(in, 1, INT, other, 99, W, requests(1) ERROR)
  call MPI_Cancel(requests(1) ERROR)
  call MPI_Wait(requests(1), status ERROR)
  call MPI_Test_cancelled(status, flag ERROR)
  CHECK(flag)

  ! The memory of a status.
  call MPI_Status_set_elements(status, INT, 6 ERROR)
  call MPI_Get_elements(status, INT, count ERROR)
  CHECK(count == 6)
  many = 7
  call MPI_Status_set_elements_x(status, INT, many ERROR)
  many = 0
  call MPI_Get_elements_x(status, INT, many ERROR)
  CHECK(many == 7)
  call MPI_Status_set_cancelled(status, .false. ERROR)
  call MPI_Test_cancelled(status, flag ERROR)
  CHECK(.not. flag)

  ! A request of our own: on_query says tag 6.
  state = 41
  call MPI_Grequest_start(on_query, on_free, on_cancel, state, requests(1) ERROR)
  call MPI_Test(requests(1), flag, status ERROR)
  CHECK(.not. flag)
  call MPI_Grequest_complete(requests(1) ERROR)
  call MPI_Wait(requests(1), status ERROR)
  CHECK(TAG_OF(status) == 6 .and. requests(1) == MPI_REQUEST_NULL)

contains

  subroutine begin()
    in = -1
    do i = 1, 3
      call MPI_Irecv(in(i), 1, INT, other, i, W, requests(i) ERROR)
    end do
    do i = 1, 3
      out(i) = 10 * me + i
      call MPI_Send(out(i), 1, INT, other, i, W ERROR)
    end do
  end subroutine

  subroutine check_one(which)
    integer :: which
    CHECK(in(which) == 10 * other + which .and. requests(which) == MPI_REQUEST_NULL)
    CHECK(TAG_OF(status) == which .and. SOURCE_OF(status) == other)
  end subroutine

  subroutine check_all()
    do i = 1, 3
      CHECK(in(i) == 10 * other + i .and. requests(i) == MPI_REQUEST_NULL)
    end do
  end subroutine
end subroutine

subroutine on_query(state, status, error)
  USE_MPI
  implicit none
  INCLUDE_MPI
  LARGE_KIND :: state
  STATUS(status)
  integer :: error
  CHECK(state == 41)
  TAG_OF(status) = 6
  SOURCE_OF(status) = 5
  error = MPI_SUCCESS
end subroutine

subroutine on_free(state, error)
  USE_MPI
  implicit none
  INCLUDE_MPI
  LARGE_KIND :: state
  integer :: error
  CHECK(state == 41)
  error = MPI_SUCCESS
end subroutine

subroutine on_cancel(state, is_complete, error)
  USE_MPI
  implicit none
  INCLUDE_MPI
  LARGE_KIND :: state
  logical :: is_complete
  integer :: error
  CHECK(state == 41 .and. .not. is_complete)
  error = MPI_SUCCESS
end subroutine
