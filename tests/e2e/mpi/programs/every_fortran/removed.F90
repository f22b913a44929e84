! Functions that later versions of the standard have removed or given another name; mpi_f08 has none.
#include "every.inc"
subroutine removed(me)
#if LANGUAGE == 3
  integer :: me
end subroutine
#else
  implicit none
  include 'mpif.h'
  integer :: me, error, key, attribute, handler, old, first, second, type, extent, lower, upper
  integer :: numbers(2), lengths(2), distances(2), types(2)
  logical :: flag
  external old_copy, old_delete, old_on_error
  call MPI_Keyval_create(old_copy, old_delete, key, 7, error)
  call MPI_Attr_put(W, key, 41, error)
  call MPI_Attr_get(W, key, attribute, flag, error)
  CHECK(flag .and. attribute == 41)
  call MPI_Attr_delete(W, key, error)
  call MPI_Attr_get(W, key, attribute, flag, error)
  CHECK(.not. flag)
  call MPI_Keyval_free(key, error)
  call MPI_Errhandler_create(old_on_error, handler, error)
  call MPI_Errhandler_get(W, old, error)
  call MPI_Errhandler_set(W, handler, error)
  call MPI_Errhandler_set(W, old, error)
  call MPI_Errhandler_free(handler, error)
  call MPI_Address(numbers(1), first, error)
  call MPI_Address(numbers(2), second, error)
  CHECK(second - first == 4)
  lengths = 1
  distances = (/0, 8/)
  types = INT
  call MPI_Type_hindexed(2, lengths, distances, INT, type, error)
  call MPI_Type_extent(type, extent, error)
  call MPI_Type_lb(type, lower, error)
  call MPI_Type_ub(type, upper, error)
  CHECK(extent == 12 .and. lower == 0 .and. upper == 12)
  call MPI_Type_free(type, error)
  call MPI_Type_hvector(2, 1, 8, INT, type, error)
  call MPI_Type_free(type, error)
  call MPI_Type_struct(2, lengths, distances, types, type, error)
  call MPI_Type_free(type, error)
end subroutine

subroutine old_copy(comm, key, state, in, out, flag, error)
  implicit none
  integer :: comm, key, state, in, out, error
  logical :: flag
  out = in
  flag = .true.
  error = 0
end subroutine

subroutine old_delete(comm, key, value, state, error)
  implicit none
  integer :: comm, key, value, state, error
  CHECK(state == 7 .and. value == 41)
  error = 0
end subroutine

subroutine old_on_error(comm, code)
  implicit none
  integer :: comm, code
  CHECK(code /= 0)
end subroutine
#endif
