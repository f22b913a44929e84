! Attributes with callbacks, error handlers, operations of our own, infos: each callback is seen to
! run as often as MPI says.
#include "every.inc"
subroutine objects(me, other)
  USE_MPI
  implicit none
  INCLUDE_MPI
  integer :: me, other, error, key, length, class, code, found, value, result, number
  integer :: copies, deletes, errors
  common /callbacks/ copies, deletes, errors
  LARGE_KIND :: state, attribute
  logical :: flag
  COMM :: comm
  DATATYPE :: type
  WINDOW :: window
  ERRHANDLER :: handler, old
  OPERATION :: operation
  INFO :: hints, copied
  character(len=MPI_MAX_ERROR_STRING) :: text
  external copy_comm, delete_comm, copy_type, delete_type, delete_window
  external on_comm_error, on_window_error, on_file_error, weigh

  ! Attributes.
  copies = 0
  deletes = 0
  errors = 0
  state = 7
  attribute = 41
  call MPI_Comm_create_keyval(copy_comm, delete_comm, key, state ERROR)
  call MPI_Comm_set_attr(W, key, attribute ERROR)
  call MPI_Comm_dup(W, comm ERROR)
  CHECK(copies == 1)
  attribute = 0
  call MPI_Comm_get_attr(comm, key, attribute, flag ERROR)
  CHECK(flag .and. attribute == 42)
  call MPI_Comm_free(comm ERROR)
  CHECK(deletes == 1)
  call MPI_Comm_delete_attr(W, key ERROR)
  CHECK(deletes == 2)
  call MPI_Comm_get_attr(W, key, attribute, flag ERROR)
  CHECK(.not. flag)
  call MPI_Comm_free_keyval(key ERROR)
  CHECK(key == MPI_KEYVAL_INVALID)

  attribute = 51
  call MPI_Type_create_keyval(copy_type, delete_type, key, state ERROR)
  call MPI_Type_set_attr(INT, key, attribute ERROR)
  call MPI_Type_dup(INT, type ERROR)
  CHECK(copies == 2)
  call MPI_Type_get_attr(type, key, attribute, flag ERROR)
  CHECK(flag .and. attribute == 52)
  call MPI_Type_free(type ERROR)
  CHECK(deletes == 3)
  call MPI_Type_delete_attr(INT, key ERROR)
  CHECK(deletes == 4)
  call MPI_Type_free_keyval(key ERROR)

  attribute = 4
  call MPI_Win_create(value, attribute, 4, MPI_INFO_NULL, W, window ERROR)
  attribute = 61
  call MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, delete_window, key, state ERROR)
  call MPI_Win_set_attr(window, key, attribute ERROR)
  call MPI_Win_get_attr(window, key, attribute, flag ERROR)
  CHECK(flag .and. attribute == 61)
  call MPI_Win_delete_attr(window, key ERROR)
  CHECK(deletes == 5)
  call MPI_Win_free_keyval(key ERROR)

  ! Error handlers.
  call MPI_Win_create_errhandler(on_window_error, handler ERROR)
  call MPI_Win_set_errhandler(window, handler ERROR)
  call MPI_Win_get_errhandler(window, old ERROR)
  CHECK(old == handler)
  call MPI_Win_call_errhandler(window, MPI_ERR_RMA_SYNC ERROR)
  CHECK(errors == 1)
  call MPI_Win_free(window ERROR)
  call MPI_Errhandler_free(handler ERROR)
  CHECK(handler == MPI_ERRHANDLER_NULL)
  call MPI_Comm_create_errhandler(on_comm_error, handler ERROR)
  call MPI_Comm_get_errhandler(W, old ERROR)
  call MPI_Comm_set_errhandler(W, handler ERROR)
  call MPI_Comm_call_errhandler(W, MPI_ERR_OTHER ERROR)
  CHECK(errors == 2)
  call MPI_Send(value, 1, INT, 77, 1, W, code)
  CHECK(errors == 3 .and. code /= MPI_SUCCESS)
  call MPI_Error_class(code, class ERROR)
  CHECK(class == MPI_ERR_RANK)
  call MPI_Comm_set_errhandler(W, old ERROR)
  call MPI_Errhandler_free(handler ERROR)
  call MPI_File_create_errhandler(on_file_error, handler ERROR)
  call MPI_File_get_errhandler(MPI_FILE_NULL, old ERROR)
  CHECK(old == MPI_ERRORS_RETURN)
  call MPI_File_set_errhandler(MPI_FILE_NULL, old ERROR)
  call MPI_Errhandler_free(handler ERROR)

  call MPI_Add_error_class(class ERROR)
  call MPI_Add_error_code(class, code ERROR)
  call MPI_Add_error_string(code, 'our own error' ERROR)
  call MPI_Error_string(code, text, length ERROR)
  CHECK(text(1:length) == 'our own error' .and. length == 13)
  call MPI_Error_class(code, found ERROR)
  CHECK(found == class)

  ! An operation.
  call MPI_Op_create(weigh, .false., operation ERROR)
  call MPI_Op_commutative(operation, flag ERROR)
  CHECK(.not. flag)
  value = me + 1
  call MPI_Allreduce(value, result, 1, INT, operation, W ERROR)
  CHECK(result == 102)
  result = 1
  call MPI_Reduce_local(value, result, 1, INT, operation ERROR)
  CHECK(result == 1 + 100 * value)
  call MPI_Op_free(operation ERROR)
  CHECK(operation == MPI_OP_NULL)

  ! Infos: strings with blanks around.
  call MPI_Info_create(hints ERROR)
  call MPI_Info_set(hints, 'first', ' a value  ' ERROR)
  call MPI_Info_set(hints, ' second ', 'b' ERROR)
  call MPI_Info_get_nkeys(hints, number ERROR)
  CHECK(number == 2)
  call MPI_Info_get_nthkey(hints, 0, text ERROR)
  CHECK(text == 'first')
  call MPI_Info_get_valuelen(hints, 'first', length, flag ERROR)
  CHECK(flag .and. length >= 7)
  call MPI_Info_get(hints, 'first', 100, text, flag ERROR)
  CHECK(flag .and. adjustl(text) == 'a value')
  call MPI_Info_get(hints, 'second', 100, text, flag ERROR)
  CHECK(flag .and. text == 'b')
  call MPI_Info_dup(hints, copied ERROR)
  call MPI_Info_delete(copied, 'first' ERROR)
  call MPI_Info_get(copied, 'first', 100, text, flag ERROR)
  CHECK(.not. flag)
#ifdef HAS_MPI_4
  length = 100
  call MPI_Info_get_string(hints, 'second', length, text, flag ERROR)
  CHECK(flag .and. text(1:1) == 'b')
#endif
  call MPI_Info_free(copied ERROR)
  call MPI_Info_free(hints ERROR)
  CHECK(hints == MPI_INFO_NULL)
end subroutine

subroutine count_copy(state, in, out, flag, error)
  USE_MPI
  implicit none
  INCLUDE_MPI
  LARGE_KIND :: state, in, out
  logical :: flag
  integer :: error, copies, deletes, errors
  common /callbacks/ copies, deletes, errors
  CHECK(state == 7)
  copies = copies + 1
  out = in + 1
  flag = .true.
  error = MPI_SUCCESS
end subroutine

subroutine count_delete(state, error)
  USE_MPI
  implicit none
  INCLUDE_MPI
  LARGE_KIND :: state
  integer :: error, copies, deletes, errors
  common /callbacks/ copies, deletes, errors
  CHECK(state == 7)
  deletes = deletes + 1
  error = MPI_SUCCESS
end subroutine

subroutine copy_comm(comm, key, state, in, out, flag, error)
  USE_MPI
  implicit none
  INCLUDE_MPI
  COMM :: comm
  integer :: key, error
  LARGE_KIND :: state, in, out
  logical :: flag
  CHECK(comm == W .and. key /= MPI_KEYVAL_INVALID)
  call count_copy(state, in, out, flag, error)
end subroutine

subroutine delete_comm(comm, key, value, state, error)
  USE_MPI
  implicit none
  INCLUDE_MPI
  COMM :: comm
  integer :: key, error
  LARGE_KIND :: value, state
  CHECK(comm /= MPI_COMM_NULL .and. value >= 41 .and. key /= MPI_KEYVAL_INVALID)
  call count_delete(state, error)
end subroutine

subroutine copy_type(type, key, state, in, out, flag, error)
  USE_MPI
  implicit none
  INCLUDE_MPI
  DATATYPE :: type
  integer :: key, error
  LARGE_KIND :: state, in, out
  logical :: flag
  CHECK(type == INT .and. key /= MPI_KEYVAL_INVALID)
  call count_copy(state, in, out, flag, error)
end subroutine

subroutine delete_type(type, key, value, state, error)
  USE_MPI
  implicit none
  INCLUDE_MPI
  DATATYPE :: type
  integer :: key, error
  LARGE_KIND :: value, state
  CHECK(value >= 51 .and. key /= MPI_KEYVAL_INVALID)
  call count_delete(state, error)
end subroutine

subroutine delete_window(window, key, value, state, error)
  USE_MPI
  implicit none
  INCLUDE_MPI
  WINDOW :: window
  integer :: key, error
  LARGE_KIND :: value, state
  CHECK(value == 61 .and. key /= MPI_KEYVAL_INVALID)
  call count_delete(state, error)
end subroutine

subroutine on_comm_error(comm, code)
  USE_MPI
  implicit none
  INCLUDE_MPI
  COMM :: comm
  integer :: code, copies, deletes, errors
  common /callbacks/ copies, deletes, errors
  CHECK(comm == W .and. code /= MPI_SUCCESS)
  errors = errors + 1
end subroutine

subroutine on_window_error(window, code)
  USE_MPI
  implicit none
  INCLUDE_MPI
  WINDOW :: window
  integer :: code, copies, deletes, errors
  common /callbacks/ copies, deletes, errors
  CHECK(window /= MPI_WIN_NULL .and. code == MPI_ERR_RMA_SYNC)
  errors = errors + 1
end subroutine

subroutine on_file_error(file, code)
  USE_MPI
  implicit none
  INCLUDE_MPI
  FILE_HANDLE :: file
  integer :: code, copies, deletes, errors
  common /callbacks/ copies, deletes, errors
  CHECK(file /= MPI_FILE_NULL .and. code == MPI_ERR_FILE)
  errors = errors + 1
end subroutine

subroutine weigh(in, inout, count, type)
  USE_MPI
  implicit none
  INCLUDE_MPI
  integer :: count, in(count), inout(count)
  DATATYPE :: type
  CHECK(type == INT)
  inout = inout + 100 * in
end subroutine
