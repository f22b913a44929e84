! Windows of every flavour, every operation on them and every way to order operations.
#include "every.inc"
subroutine windows(me, other)
  USE_MPI
  use iso_c_binding, only: c_ptr, c_f_pointer
  implicit none
  INCLUDE_MPI
  integer :: me, other, error, value, got, old, zero, i, number, unit, length
  integer, save, asynchronous, volatile :: memory(8), attached
  integer, pointer :: others(:)
  logical :: flag
  LARGE_KIND :: bytes, place, mine(1), theirs(1)
#if LANGUAGE == 1
  LARGE_KIND :: address
#else
  type(c_ptr) :: address
#endif
  WINDOW :: window
  GROUP :: all, peer
  REQUEST :: request
  INFO :: hints
  character(len=MPI_MAX_OBJECT_NAME) :: name

  bytes = 32
  memory = 0
  zero = 0
  call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, W, window ERROR)
  value = 10 + me
  call MPI_Win_fence(0, window ERROR)
  place = 0
  call MPI_Put(value, 1, INT, other, place, 1, INT, window ERROR)
  place = 1
  call MPI_Accumulate(value, 1, INT, other, place, 1, INT, MPI_SUM, window ERROR)
  call MPI_Win_fence(0, window ERROR)
  call MPI_Get(got, 1, INT, other, place, 1, INT, window ERROR)
  call MPI_Win_fence(0, window ERROR)
  CHECK(memory(1) == 10 + other .and. memory(2) == 10 + other .and. got == value)

  call MPI_Comm_group(W, all ERROR)
  call MPI_Group_incl(all, 1, (/other/), peer ERROR)
  place = 2
  do i = 1, 2
    value = 20 + i
    if (me == 0) then
      call MPI_Win_start(peer, 0, window ERROR)
      call MPI_Put(value, 1, INT, 1, place, 1, INT, window ERROR)
      call MPI_Win_complete(window ERROR)
    else
      call MPI_Win_post(peer, 0, window ERROR)
      flag = .false.
      if (i == 1) call MPI_Win_wait(window ERROR)
      do while (i == 2 .and. .not. flag)
        call MPI_Win_test(window, flag ERROR)
      end do
      CHECK(memory(3) == value)
    end if
  end do
  call MPI_Group_free(peer ERROR)
  call MPI_Group_free(all ERROR)
  call MPI_Barrier(W ERROR)

  place = 3
  call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, other, 0, window ERROR)
  call MPI_Put(zero, 1, INT, other, place, 1, INT, window ERROR)
  call MPI_Win_unlock(other, window ERROR)
  call MPI_Barrier(W ERROR)
  value = 30 + me
  call MPI_Win_lock_all(0, window ERROR)
  call MPI_Get_accumulate(value, 1, INT, old, 1, INT, other, place, 1, INT, MPI_SUM, window ERROR)
  call MPI_Win_flush(other, window ERROR)
  CHECK(old == 0)
  call MPI_Fetch_and_op(value, old, INT, other, place, MPI_REPLACE, window ERROR)
  call MPI_Win_flush_all(window ERROR)
  CHECK(old == value)
  call MPI_Compare_and_swap(zero, value, old, INT, other, place, window ERROR)
  call MPI_Win_flush_local(other, window ERROR)
  call MPI_Win_flush_local_all(window ERROR)
  CHECK(old == value)
  call MPI_Win_sync(window ERROR)
  place = 4
  call MPI_Rput(value, 1, INT, other, place, 1, INT, window, request ERROR)
  call MPI_Wait(request, MPI_STATUS_IGNORE ERROR)
  call MPI_Win_flush(other, window ERROR)
  call MPI_Rget(got, 1, INT, other, place, 1, INT, window, request ERROR)
  call MPI_Wait(request, MPI_STATUS_IGNORE ERROR)
  CHECK(got == value)
  call MPI_Raccumulate(value, 1, INT, other, place, 1, INT, MPI_SUM, window, request ERROR)
  call MPI_Wait(request, MPI_STATUS_IGNORE ERROR)
  call MPI_Win_flush(other, window ERROR)
  call MPI_Rget_accumulate(value, 1, INT, old, 1, INT, other, place, 1, INT, MPI_NO_OP, window, &
                           request ERROR)
  call MPI_Wait(request, MPI_STATUS_IGNORE ERROR)
  CHECK(old == 2 * value)
  call MPI_Win_unlock_all(window ERROR)
  call MPI_Barrier(W ERROR)

  call MPI_Win_set_name(window, 'window' ERROR)
  call MPI_Win_get_name(window, name, length ERROR)
  ! Open MPI 4.1's mpi_f08 copies one letter.
  CHECK(name(1:1) == 'w' .and. length == 6)
  call MPI_Win_get_group(window, all ERROR)
  call MPI_Group_size(all, number ERROR)
  CHECK(number == 2)
  call MPI_Group_free(all ERROR)
  call MPI_Win_get_info(window, hints ERROR)
  call MPI_Win_set_info(window, hints ERROR)
  call MPI_Info_free(hints ERROR)
  call MPI_Win_free(window ERROR)
  CHECK(window == MPI_WIN_NULL)

  call MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, W, address, window ERROR)
  call MPI_Win_free(window ERROR)
  call MPI_Win_allocate_shared(bytes, 4, MPI_INFO_NULL, W, address, window ERROR)
  call MPI_Win_shared_query(window, other, bytes, unit, address ERROR)
  CHECK(bytes == 32 .and. unit == 4)
#if LANGUAGE != 1
  call c_f_pointer(address, others, (/8/))
  call MPI_Win_fence(0, window ERROR)
  others(1) = 50 + me
  call MPI_Win_fence(0, window ERROR)
  call MPI_Win_shared_query(window, me, bytes, unit, address ERROR)
  call c_f_pointer(address, others, (/8/))
  CHECK(others(1) == 50 + other)
#endif
  call MPI_Win_free(window ERROR)

  attached = 0
  bytes = 4
  value = 60 + me
  call MPI_Win_create_dynamic(MPI_INFO_NULL, W, window ERROR)
  call MPI_Win_attach(window, attached, bytes ERROR)
  call MPI_Get_address(attached, mine(1) ERROR)
  call MPI_Sendrecv(mine, 1, MPI_AINT, other, 1, theirs, 1, MPI_AINT, other, 1, W, &
                    MPI_STATUS_IGNORE ERROR)
  call MPI_Win_fence(0, window ERROR)
  call MPI_Put(value, 1, INT, other, theirs(1), 1, INT, window ERROR)
  call MPI_Win_fence(0, window ERROR)
  CHECK(attached == 60 + other)
  call MPI_Win_detach(window, attached ERROR)
  call MPI_Win_free(window ERROR)
  bytes = 64
  call MPI_Alloc_mem(bytes, MPI_INFO_NULL, address ERROR)
#if LANGUAGE == 1
  call free_address(address)
#else
  call c_f_pointer(address, others, (/16/))
  others = 1
  call MPI_Free_mem(others ERROR)
#endif
end subroutine

#if LANGUAGE == 1
! What stands at an address, for MPI_Free_mem.
subroutine free_address(address)
  use iso_c_binding, only: c_ptr, c_intptr_t, c_f_pointer
  implicit none
  INCLUDE_MPI
  LARGE_KIND :: address
  integer :: error
  type(c_ptr) :: at
  integer, pointer :: memory(:)
  at = transfer(address, at)
  call c_f_pointer(at, memory, (/16/))
  memory = 1
  call MPI_Free_mem(memory ERROR)
end subroutine
#endif
