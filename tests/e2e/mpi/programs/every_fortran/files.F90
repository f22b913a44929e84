! Every function of MPI-IO: what one function writes the reading function of the same form reads. Each
! rank has an integer of its own in the file, which is another number each time.
#include "every.inc"
subroutine files(me, other, folder)
  USE_MPI
  implicit none
  INCLUDE_MPI
  integer :: me, other, error, value, got, number, theirs, both(2), mode, result
  integer(kind=MPI_OFFSET_KIND) :: own, nowhere, size, offset
  LARGE_KIND :: extent, state
  logical :: flag
  character(len=*) :: folder
  character(len=MPI_MAX_DATAREP_STRING) :: representation
  FILE_HANDLE :: file
  STATUS(status)
  REQUEST :: request
  GROUP :: group
  INFO :: hints
  DATATYPE :: unit, type
  ERRHANDLER :: handler
  external on_file_error, extent_of

  own = 4 * me
  nowhere = 0
  value = 0
  call MPI_File_open(W, trim(folder)//'/fortran.bin', MPI_MODE_CREATE + MPI_MODE_RDWR, &
                     MPI_INFO_NULL, file ERROR)
  call MPI_File_create_errhandler(on_file_error, handler ERROR)
  call MPI_File_set_errhandler(file, handler ERROR)
  call MPI_File_call_errhandler(file, MPI_ERR_FILE ERROR)
  call MPI_File_set_errhandler(file, MPI_ERRORS_RETURN ERROR)
  call MPI_Errhandler_free(handler ERROR)

  ! At offsets.
  call next_value()
  call MPI_File_write_at(file, own, value, 1, INT, status ERROR)
  call MPI_File_read_at(file, own, got, 1, INT, status ERROR)
  CHECK(got == value)
  call check_count()
  call next_value()
  call MPI_File_write_at_all(file, own, value, 1, INT, status ERROR)
  call MPI_File_read_at_all(file, own, got, 1, INT, status ERROR)
  CHECK(got == value)
  call check_count()
  call next_value()
  call MPI_File_iwrite_at(file, own, value, 1, INT, request ERROR)
  call MPI_Wait(request, status ERROR)
  call MPI_File_iread_at(file, own, got, 1, INT, request ERROR)
  call MPI_Wait(request, status ERROR)
  CHECK(got == value)
  call check_count()
  call next_value()
  call MPI_File_iwrite_at_all(file, own, value, 1, INT, request ERROR)
  call MPI_Wait(request, status ERROR)
  call MPI_File_iread_at_all(file, own, got, 1, INT, request ERROR)
  call MPI_Wait(request, status ERROR)
  CHECK(got == value)
  call check_count()
  call next_value()
  call MPI_File_write_at_all_begin(file, own, value, 1, INT ERROR)
  call MPI_File_write_at_all_end(file, value, status ERROR)
  call MPI_File_read_at_all_begin(file, own, got, 1, INT ERROR)
  call MPI_File_read_at_all_end(file, got, status ERROR)
  CHECK(got == value)
  call check_count()

  ! At the pointer of each.
  call next_value()
  call rewind_own()
  call MPI_File_write(file, value, 1, INT, status ERROR)
  call rewind_own()
  call MPI_File_read(file, got, 1, INT, status ERROR)
  CHECK(got == value)
  call check_count()
  call next_value()
  call rewind_own()
  call MPI_File_write_all(file, value, 1, INT, status ERROR)
  call rewind_own()
  call MPI_File_read_all(file, got, 1, INT, status ERROR)
  CHECK(got == value)
  call check_count()
  call next_value()
  call rewind_own()
  call MPI_File_iwrite(file, value, 1, INT, request ERROR)
  call MPI_Wait(request, status ERROR)
  call rewind_own()
  call MPI_File_iread(file, got, 1, INT, request ERROR)
  call MPI_Wait(request, status ERROR)
  CHECK(got == value)
  call check_count()
  call next_value()
  call rewind_own()
  call MPI_File_iwrite_all(file, value, 1, INT, request ERROR)
  call MPI_Wait(request, status ERROR)
  call rewind_own()
  call MPI_File_iread_all(file, got, 1, INT, request ERROR)
  call MPI_Wait(request, status ERROR)
  CHECK(got == value)
  call check_count()
  call next_value()
  call rewind_own()
  call MPI_File_write_all_begin(file, value, 1, INT ERROR)
  call MPI_File_write_all_end(file, value, status ERROR)
  call rewind_own()
  call MPI_File_read_all_begin(file, got, 1, INT ERROR)
  call MPI_File_read_all_end(file, got, status ERROR)
  CHECK(got == value)
  call check_count()

  ! At the pointer of both: who comes first writes first, but in the ordered forms.
  call next_value()
  call rewind_shared()
  call MPI_File_write_shared(file, value, 1, INT, status ERROR)
  call check_both()
  call rewind_shared()
  call MPI_File_read_shared(file, got, 1, INT, status ERROR)
  call check_count()
  call next_value()
  call rewind_shared()
  call MPI_File_iwrite_shared(file, value, 1, INT, request ERROR)
  call MPI_Wait(request, status ERROR)
  call check_both()
  call rewind_shared()
  call MPI_File_iread_shared(file, got, 1, INT, request ERROR)
  call MPI_Wait(request, status ERROR)
  call check_count()
  call next_value()
  call rewind_shared()
  call MPI_File_write_ordered(file, value, 1, INT, status ERROR)
  call rewind_shared()
  call MPI_File_read_ordered(file, got, 1, INT, status ERROR)
  CHECK(got == value)
  call check_count()
  call next_value()
  call rewind_shared()
  call MPI_File_write_ordered_begin(file, value, 1, INT ERROR)
  call MPI_File_write_ordered_end(file, value, status ERROR)
  call rewind_shared()
  call MPI_File_read_ordered_begin(file, got, 1, INT ERROR)
  call MPI_File_read_ordered_end(file, got, status ERROR)
  CHECK(got == value)
  call check_count()

  call MPI_File_get_position(file, offset ERROR)
  CHECK(offset == 4 * me + 4)
  call MPI_File_get_position_shared(file, offset ERROR)
  CHECK(offset == 8)

  ! What a file is asked.
  call MPI_File_get_amode(file, mode ERROR)
  CHECK(mode == MPI_MODE_CREATE + MPI_MODE_RDWR)
  call MPI_File_get_group(file, group ERROR)
  call MPI_Group_size(group, number ERROR)
  CHECK(number == 2)
  call MPI_Group_free(group ERROR)
  call MPI_File_get_info(file, hints ERROR)
  call MPI_File_set_info(file, hints ERROR)
  call MPI_Info_free(hints ERROR)
  size = 40
  call MPI_File_set_size(file, size ERROR)
  size = 48
  call MPI_File_preallocate(file, size ERROR)
  call settle()
  call MPI_File_get_size(file, size ERROR)
  CHECK(size == 48)
  call MPI_File_set_atomicity(file, .true., result)
  call MPI_File_get_atomicity(file, flag ERROR)
  CHECK(flag .or. result /= MPI_SUCCESS)
  call MPI_File_get_type_extent(file, INT, extent ERROR)
  CHECK(extent == 4)
  offset = 8
  call MPI_File_set_view(file, offset, INT, INT, 'native', MPI_INFO_NULL ERROR)
  call MPI_File_get_view(file, offset, unit, type, representation ERROR)
  CHECK(offset == 8 .and. representation == 'native')
  size = 3
  call MPI_File_get_byte_offset(file, size, offset ERROR)
  CHECK(offset == 20)
  call MPI_File_close(file ERROR)
  CHECK(file == MPI_FILE_NULL)
  if (me == 0) call MPI_File_delete(trim(folder)//'/fortran.bin', MPI_INFO_NULL ERROR)
  call MPI_Barrier(W ERROR)
  call MPI_Register_datarep('ours', MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent_of, &
                            state, result)

contains

  ! Both ranks see what both have written before this.
  subroutine settle()
    call MPI_File_sync(file ERROR)
    call MPI_Barrier(W ERROR)
    call MPI_File_sync(file ERROR)
  end subroutine

  subroutine next_value()
    call settle()
    value = value + 1 + me
    got = -1
  end subroutine

  subroutine rewind_own()
    call settle()
    call MPI_File_seek(file, own, MPI_SEEK_SET ERROR)
  end subroutine

  subroutine rewind_shared()
    call settle()
    call MPI_File_seek_shared(file, nowhere, MPI_SEEK_SET ERROR)
  end subroutine

  subroutine check_count()
    call MPI_Get_count(status, INT, number ERROR)
    CHECK(number == 1)
  end subroutine

  subroutine check_both()
    call settle()
    call MPI_File_read_at(file, nowhere, both, 2, INT, MPI_STATUS_IGNORE ERROR)
    call MPI_Sendrecv(value, 1, INT, other, 1, theirs, 1, INT, other, 1, W, MPI_STATUS_IGNORE ERROR)
    CHECK(both(1) + both(2) == value + theirs .and. (both(1) == value .or. both(1) == theirs))
  end subroutine
end subroutine

subroutine extent_of(type, extent, state, error)
  USE_MPI
  implicit none
  INCLUDE_MPI
  DATATYPE :: type
  LARGE_KIND :: extent, state
  integer :: error
  extent = 4
  error = MPI_SUCCESS
end subroutine
