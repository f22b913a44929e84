! Large counts of mpi_f08 under names of its own; those with buffers call C's functions.
#include "every.inc"
#if LANGUAGE != 3 || !defined(HAS_MPI_4)
subroutine large_counts(me)
  integer :: me
end subroutine
#else
#define COUNT_KIND integer(kind=MPI_COUNT_KIND)
subroutine large_counts(me)
  USE_MPI
  use iso_c_binding, only: c_ptr
  implicit none
  integer :: me, combiner, got(2), numbers(4)
  character(len=1), save, asynchronous :: buffer(4096)
  COUNT_KIND :: one, two, four, number, counts(4), lengths(2), places(2), distances(2), sizes(1)
  COUNT_KIND :: larges(4)
  integer(kind=MPI_ADDRESS_KIND) :: bytes, unit, addresses(1)
  DATATYPE :: type, types(2), inner(1)
  STATUS(status)
  WINDOW :: window
  type(c_ptr) :: address

  one = 1
  two = 2
  four = 4
  lengths = (/2, 1/)
  places = (/0, 3/)
  distances = (/0, 20/)
  sizes = 8
  types = INT
  call MPI_Type_contiguous(two, INT, type)
  call has_size(8)
  call MPI_Type_vector(two, two, four, INT, type)
  call has_size(16)
  call MPI_Type_create_hvector(two, one, four, INT, type)
  call has_size(8)
  call MPI_Type_indexed(two, lengths, places, INT, type)
  call has_size(12)
  call MPI_Type_create_indexed_block(two, two, places, INT, type)
  call has_size(16)
  call MPI_Type_create_hindexed(two, lengths, distances, INT, type)
  call has_size(12)
  call MPI_Type_create_hindexed_block(two, two, distances, INT, type)
  call has_size(16)
  call MPI_Type_create_struct(two, lengths, distances, types, type)
  call has_size(12)
  call MPI_Type_create_subarray(1, sizes, sizes - 4, sizes - 8, MPI_ORDER_FORTRAN, INT, type)
  call has_size(16)
  call MPI_Type_create_darray(2, me, 1, sizes, (/MPI_DISTRIBUTE_BLOCK/), &
                              (/MPI_DISTRIBUTE_DFLT_DARG/), (/2/), MPI_ORDER_FORTRAN, INT, type)
  call has_size(16)
  call MPI_Type_contiguous(two, INT, type)
  call MPI_Type_get_envelope(type, counts(1), counts(2), counts(3), counts(4), combiner)
  CHECK(counts(1) + counts(3) == 1 .and. counts(4) == 1 .and. combiner == MPI_COMBINER_CONTIGUOUS)
  call MPI_Type_get_contents(type, counts(1), counts(2), counts(3), counts(4), numbers, addresses, &
                             larges, inner)
  CHECK(inner(1) == INT)
  call MPI_Type_free(type)

  call MPI_Pack_size(two, INT, W, number)
  CHECK(number >= 8)
  call MPI_Pack_external_size('external32', two, INT, number)
  CHECK(number == 8)
  number = 4096
  call MPI_Buffer_attach(buffer, number)
  call MPI_Buffer_detach(address, number)
  CHECK(number == 4096)
  call MPI_Sendrecv(numbers, two, INT, me, 1, got, two, INT, me, 1, W, status)
  call MPI_Get_count(status, INT, number)
  CHECK(number == 2)
  call MPI_Get_elements(status, INT, number)
  CHECK(number == 2)
  bytes = 32
  unit = 4
  call MPI_Win_allocate(bytes, unit, MPI_INFO_NULL, W, address, window)
  call MPI_Win_free(window)
  call MPI_Win_allocate_shared(bytes, unit, MPI_INFO_NULL, W, address, window)
  call MPI_Win_shared_query(window, 1 - me, bytes, unit, address)
  CHECK(bytes == 32 .and. unit == 4)
  call MPI_Win_free(window)

contains

  subroutine has_size(bytes)
    integer :: bytes
    call MPI_Type_size(type, number)
    CHECK(number == bytes)
    call MPI_Type_free(type)
  end subroutine
end subroutine
#endif
