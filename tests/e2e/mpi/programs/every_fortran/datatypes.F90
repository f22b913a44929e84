! Every constructor of a datatype and every question about one; packing.
#include "every.inc"
subroutine datatypes(me, other)
  USE_MPI
  implicit none
  INCLUDE_MPI
  integer :: me, other, error, length, number, position, i, combiner
  integer :: numbers(32), packed(32), lengths(2), places(2), counts(3), values(4)
  LARGE_KIND :: distances(2), lower, extent, address, later, none(1)
  integer(kind=MPI_COUNT_KIND) :: lower_x, extent_x
  DATATYPE :: type, types(2), inner(1)
  character(len=MPI_MAX_OBJECT_NAME) :: name

  do i = 1, 32
    numbers(i) = i - 1
  end do
  lengths = (/2, 1/)
  places = (/0, 3/)
  distances = (/0, 20/)
  types = INT
  call MPI_Type_contiguous(3, INT, type ERROR)
  call selects((/0, 1, 2/))
  call MPI_Type_vector(2, 2, 4, INT, type ERROR)
  call selects((/0, 1, 4, 5/))
  extent = 12
  call MPI_Type_create_hvector(2, 1, extent, INT, type ERROR)
  call selects((/0, 3/))
  call MPI_Type_dup(INT, type ERROR)
  call selects((/0/))
  call MPI_Type_create_subarray(2, (/4, 4/), (/2, 2/), (/2, 1/), MPI_ORDER_FORTRAN, INT, type ERROR)
  call selects((/6, 7, 10, 11/))
  call MPI_Type_create_darray(2, 1, 1, (/8/), (/MPI_DISTRIBUTE_BLOCK/), &
                              (/MPI_DISTRIBUTE_DFLT_DARG/), (/2/), MPI_ORDER_FORTRAN, INT, type ERROR)
  call selects((/4, 5, 6, 7/))
  call MPI_Type_indexed(2, lengths, places, INT, type ERROR)
  call selects((/0, 1, 3/))
  call MPI_Type_create_indexed_block(2, 2, places, INT, type ERROR)
  call selects((/0, 1, 3, 4/))
  call MPI_Type_create_hindexed(2, lengths, distances, INT, type ERROR)
  call selects((/0, 1, 5/))
  call MPI_Type_create_hindexed_block(2, 2, distances, INT, type ERROR)
  call selects((/0, 1, 5, 6/))
  call MPI_Type_create_struct(2, lengths, distances, types, type ERROR)
  call selects((/0, 1, 5/))

  lower = 0
  extent = 12
  call MPI_Type_create_resized(INT, lower, extent, type ERROR)
  call MPI_Type_get_extent(type, lower, extent ERROR)
  CHECK(lower == 0 .and. extent == 12)
  call MPI_Type_get_true_extent(type, lower, extent ERROR)
  CHECK(lower == 0 .and. extent == 4)
  call MPI_Type_get_extent_x(type, lower_x, extent_x ERROR)
  CHECK(lower_x == 0 .and. extent_x == 12)
  call MPI_Type_get_true_extent_x(type, lower_x, extent_x ERROR)
  CHECK(lower_x == 0 .and. extent_x == 4)
  call MPI_Type_size_x(type, extent_x ERROR)
  CHECK(extent_x == 4)
  call MPI_Type_free(type ERROR)

  call MPI_Type_vector(2, 1, 4, INT, type ERROR)
  call MPI_Type_get_envelope(type, counts(1), counts(2), counts(3), combiner ERROR)
  CHECK(counts(1) == 3 .and. counts(2) == 0 .and. counts(3) == 1 .and. combiner == MPI_COMBINER_VECTOR)
  call MPI_Type_get_contents(type, 3, 0, 1, values, none, inner ERROR)
  CHECK(values(1) == 2 .and. values(2) == 1 .and. values(3) == 4 .and. inner(1) == INT)
  call MPI_Type_set_name(type, 'column' ERROR)
  call MPI_Type_get_name(type, name, length ERROR)
  CHECK(name == 'column' .and. length == 6)
  call MPI_Type_free(type ERROR)

  call MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 4, type ERROR)
  call has_size(4)
  call MPI_Type_create_f90_integer(9, type ERROR)
  call has_size(4)
  call MPI_Type_create_f90_real(15, MPI_UNDEFINED, type ERROR)
  call has_size(8)
  call MPI_Type_create_f90_complex(15, MPI_UNDEFINED, type ERROR)
  call has_size(16)
  call MPI_Get_address(numbers(1), address ERROR)
  call MPI_Get_address(numbers(2), later ERROR)
  CHECK(later - address == 4)

  ! Packing.
  position = 0
  call MPI_Pack(numbers, 3, INT, packed, 128, position, W ERROR)
  position = 0
  values = -1
  call MPI_Unpack(packed, 128, position, values, 3, INT, W ERROR)
  CHECK(all(values(1:3) == (/0, 1, 2/)))
  call MPI_Pack_external_size('external32', 3, INT, extent ERROR)
  CHECK(extent == 12)
  address = 0
  extent = 128
  call MPI_Pack_external('external32', numbers, 3, INT, packed, extent, address ERROR)
  CHECK(address == 12 .and. packed(2) == ishft(1, 24))
  address = 0
  values = -1
  call MPI_Unpack_external('external32', packed, extent, address, values, 3, INT ERROR)
  CHECK(all(values(1:3) == (/0, 1, 2/)))

contains

  subroutine selects(expected)
    integer :: expected(:)
    call MPI_Type_commit(type ERROR)
    call has_size(4 * size(expected))
    call MPI_Pack_size(1, type, W, number ERROR)
    CHECK(number >= 4 * size(expected))
    position = 0
    call MPI_Pack(numbers, 1, type, packed, 128, position, W ERROR)
    CHECK(position == 4 * size(expected))
    CHECK(all(packed(1:size(expected)) == expected))
    call MPI_Type_free(type ERROR)
    CHECK(type == MPI_DATATYPE_NULL)
  end subroutine

  subroutine has_size(bytes)
    integer :: bytes
    call MPI_Type_size(type, number ERROR)
    CHECK(number == bytes)
  end subroutine
end subroutine
