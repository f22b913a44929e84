// Every constructor of a datatype and every question about one; what a type selects is seen in what
// MPI_Pack makes of numbered integers.
#include "tests/e2e/mpi/programs/every/every.h"

enum { kNumbers = 32 };

/// Commits `type`, packs one of it from 0, 1, 2, ... and frees it; these must come out.
static void check_selection(MPI_Datatype* type, int count, const int* expected) {
  static int numbers[kNumbers];
  int packed[kNumbers];
  Count position = 0, size_bytes = 0, room_bytes = 0;
  for (int i = 0; i < kNumbers; ++i) numbers[i] = i;
  OK(MPI_Type_commit(type));
  OK(MPI_Type_size(*type, &size_bytes));
  CHECK((size_t)size_bytes == (size_t)count * sizeof(int));
  OK(MPI_Pack_size(1, *type, W, &room_bytes));
  CHECK(room_bytes >= size_bytes);
  OK(MPI_Pack(numbers, 1, *type, packed, sizeof packed, &position, W));
  CHECK(position == size_bytes && memcmp(packed, expected, (size_t)size_bytes) == 0);
  OK(MPI_Type_free(type));
  CHECK(*type == MPI_DATATYPE_NULL);
}
#define SELECTS(...) \
  check_selection(&type, sizeof((int[]){__VA_ARGS__}) / sizeof(int), (const int[]){__VA_ARGS__})

static void regular(void) {
  MPI_Datatype type;
  OK(MPI_Type_contiguous(3, MPI_INT, &type));
  SELECTS(0, 1, 2);
  OK(MPI_Type_vector(2, 2, 4, MPI_INT, &type));
  SELECTS(0, 1, 4, 5);
  OK(MPI_Type_create_hvector(2, 1, 3 * sizeof(int), MPI_INT, &type));
  SELECTS(0, 3);
  OK(MPI_Type_dup(MPI_INT, &type));
  SELECTS(0);
  OK(MPI_Type_create_subarray(2, (const Count[]){4, 4}, (const Count[]){2, 2},
                              (const Count[]){1, 2}, MPI_ORDER_C, MPI_INT, &type));
  SELECTS(6, 7, 10, 11);
  const Count sizes[1] = {8};
  OK(MPI_Type_create_darray(2, 1, 1, sizes, (const int[]){MPI_DISTRIBUTE_BLOCK},
                            (const int[]){MPI_DISTRIBUTE_DFLT_DARG}, (const int[]){2}, MPI_ORDER_C,
                            MPI_INT, &type));
  SELECTS(4, 5, 6, 7);
}

static void irregular(void) {
  MPI_Datatype type;
  const Count lengths[2] = {2, 1};
  const Count places[2] = {0, 3};
  const ByteDistance distances[2] = {0, 5 * sizeof(int)};
  const MPI_Datatype types[2] = {MPI_INT, MPI_INT};
  OK(MPI_Type_indexed(2, lengths, places, MPI_INT, &type));
  SELECTS(0, 1, 3);
  OK(MPI_Type_create_indexed_block(2, 2, places, MPI_INT, &type));
  SELECTS(0, 1, 3, 4);
  OK(MPI_Type_create_hindexed(2, lengths, distances, MPI_INT, &type));
  SELECTS(0, 1, 5);
  OK(MPI_Type_create_hindexed_block(2, 2, distances, MPI_INT, &type));
  SELECTS(0, 1, 5, 6);
  OK(MPI_Type_create_struct(2, lengths, distances, types, &type));
  SELECTS(0, 1, 5);
}

static void extents(void) {
  MPI_Datatype type;
  ByteDistance lower = -1, extent = -1;
  MPI_Count many = -1, lower_x = -1, extent_x = -1;
  OK(MPI_Type_create_resized(MPI_INT, 0, 12, &type));
  OK(MPI_Type_get_extent(type, &lower, &extent));
  CHECK(lower == 0 && extent == 12);
  OK(MPI_Type_get_true_extent(type, &lower, &extent));
  CHECK(lower == 0 && extent == sizeof(int));
  OK(MPI_Type_get_extent_x(type, &lower_x, &extent_x));
  CHECK(lower_x == 0 && extent_x == 12);
  OK(MPI_Type_get_true_extent_x(type, &lower_x, &extent_x));
  CHECK(lower_x == 0 && extent_x == sizeof(int));
  OK(MPI_Type_size_x(type, &many));
  CHECK(many == sizeof(int));
  OK(MPI_Type_free(&type));
}

static void contents(void) {
  MPI_Datatype type, inner = MPI_DATATYPE_NULL;
  Count integers = -1, addresses = -1, types = -1;
  int combiner = -1, length = -1;
  int values[4] = {-1, -1, -1, -1};
  MPI_Aint places[1];
  char name[MPI_MAX_OBJECT_NAME];
  OK(MPI_Type_vector(2, 1, 4, MPI_INT, &type));
#ifdef LARGE
  Count counts = -1, large[4] = {-1, -1, -1, -1};
  OK(MPI_Type_get_envelope(type, &integers, &addresses, &counts, &types, &combiner));
  CHECK(integers + counts == 3);
  OK(MPI_Type_get_contents(type, integers, addresses, counts, types, values, places, large,
                           &inner));
  CHECK((integers == 3 ? values[2] : large[2]) == 4);
#else
  OK(MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner));
  CHECK(integers == 3);
  OK(MPI_Type_get_contents(type, integers, addresses, types, values, places, &inner));
  CHECK(values[0] == 2 && values[1] == 1 && values[2] == 4);
#endif
  CHECK(addresses == 0 && types == 1 && combiner == MPI_COMBINER_VECTOR && inner == MPI_INT);
  OK(MPI_Type_set_name(type, "column"));
  OK(MPI_Type_get_name(type, name, &length));
  CHECK(strcmp(name, "column") == 0 && length == 6);
  OK(MPI_Type_free(&type));
}

static void named(void) {
  MPI_Datatype type;
  MPI_Aint first = 0, second = 0;
  Count size_bytes = 0;
  int pair[2];
  OK(MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 4, &type));
  OK(MPI_Type_size(type, &size_bytes));
  CHECK(size_bytes == 4);
  OK(MPI_Type_create_f90_integer(9, &type));
  OK(MPI_Type_size(type, &size_bytes));
  CHECK(size_bytes == 4);
  OK(MPI_Type_create_f90_real(15, MPI_UNDEFINED, &type));
  OK(MPI_Type_size(type, &size_bytes));
  CHECK(size_bytes == 8);
  OK(MPI_Type_create_f90_complex(15, MPI_UNDEFINED, &type));
  OK(MPI_Type_size(type, &size_bytes));
  CHECK(size_bytes == 16);
  OK(MPI_Get_address(&pair[0], &first));
  OK(MPI_Get_address(&pair[1], &second));
  CHECK(MPI_Aint_diff(second, first) == sizeof(int) && MPI_Aint_add(first, 4) == second);
}

void datatypes(void) {
  regular();
  irregular();
  extents();
  contents();
  named();
}

void packing(void) {
  const int numbers[3] = {1, 2, 3};
  int back[3] = {0, 0, 0};
  char memory[64];
  Count position = 0;
  ByteDistance size_bytes = 0, external = 0;
  OK(MPI_Pack(numbers, 3, MPI_INT, memory, sizeof memory, &position, W));
  position = 0;
  OK(MPI_Unpack(memory, sizeof memory, &position, back, 3, MPI_INT, W));
  CHECK(memcmp(back, numbers, sizeof back) == 0);
  memset(back, 0, sizeof back);
  OK(MPI_Pack_external_size("external32", 3, MPI_INT, &size_bytes));
  CHECK(size_bytes == 12);
  OK(MPI_Pack_external("external32", numbers, 3, MPI_INT, memory, sizeof memory, &external));
  CHECK(external == 12 && memory[0] == 0 && memory[3] == 1);
  external = 0;
  OK(MPI_Unpack_external("external32", memory, sizeof memory, &external, back, 3, MPI_INT));
  CHECK(memcmp(back, numbers, sizeof back) == 0);
}
