// Every function of MPI-IO: what one function writes the reading function of the same form reads.
// Each rank has an integer of its own in the file, which is another number each time.
#include "tests/e2e/mpi/programs/every/every.h"

static MPI_File g_file;
static MPI_Status g_status;
static MPI_Request g_request;
static int g_out;
static int g_in;

static int own_place(void) { return me * (int)sizeof(int); }

/// All ranks see what all have written before this.
static void settle(void) {
  OK(MPI_File_sync(g_file));
  OK(MPI_Barrier(W));
  OK(MPI_File_sync(g_file));
}
static void next_value(void) {
  settle();
  g_out = g_out + 1 + me;
  g_in = -1;
}
static void check_status(void) {
  Count count = -1;
  OK(MPI_Get_count(&g_status, MPI_INT, &count));
  CHECK(count == 1);
}
static void check_value(void) {
  CHECK(g_in == g_out);
  check_status();
}
static void finish(void) { OK(MPI_Wait(&g_request, &g_status)); }
static void rewind_own(void) {
  settle();
  OK(MPI_File_seek(g_file, own_place(), MPI_SEEK_SET));
}
static void rewind_shared(void) {
  settle();
  OK(MPI_File_seek_shared(g_file, 0, MPI_SEEK_SET));
}
/// The integers of both ranks are in the file, in any order.
static void check_both(void) {
  int numbers[2] = {-1, -1}, others = -1;
  settle();
  OK(MPI_File_read_at(g_file, 0, numbers, 2, MPI_INT, MPI_STATUS_IGNORE));
  OK(MPI_Sendrecv(&g_out, 1, MPI_INT, other, 1, &others, 1, MPI_INT, other, 1, W,
                  MPI_STATUS_IGNORE));
  CHECK(numbers[0] + numbers[1] == g_out + others);
  CHECK(numbers[0] == g_out || numbers[0] == others);
}

static void explicit_offsets(void) {
  next_value();
  OK(MPI_File_write_at(g_file, own_place(), &g_out, 1, MPI_INT, &g_status));
  check_status();
  OK(MPI_File_read_at(g_file, own_place(), &g_in, 1, MPI_INT, &g_status));
  check_value();
  next_value();
  OK(MPI_File_write_at_all(g_file, own_place(), &g_out, 1, MPI_INT, &g_status));
  OK(MPI_File_read_at_all(g_file, own_place(), &g_in, 1, MPI_INT, &g_status));
  check_value();
  next_value();
  OK(MPI_File_iwrite_at(g_file, own_place(), &g_out, 1, MPI_INT, &g_request));
  finish();
  OK(MPI_File_iread_at(g_file, own_place(), &g_in, 1, MPI_INT, &g_request));
  finish();
  check_value();
  next_value();
  OK(MPI_File_iwrite_at_all(g_file, own_place(), &g_out, 1, MPI_INT, &g_request));
  finish();
  OK(MPI_File_iread_at_all(g_file, own_place(), &g_in, 1, MPI_INT, &g_request));
  finish();
  check_value();
  next_value();
  OK(MPI_File_write_at_all_begin(g_file, own_place(), &g_out, 1, MPI_INT));
  OK(MPI_File_write_at_all_end(g_file, &g_out, &g_status));
  OK(MPI_File_read_at_all_begin(g_file, own_place(), &g_in, 1, MPI_INT));
  OK(MPI_File_read_at_all_end(g_file, &g_in, &g_status));
  check_value();
}

static void own_pointers(void) {
  MPI_Offset position = -1;
  next_value();
  rewind_own();
  OK(MPI_File_write(g_file, &g_out, 1, MPI_INT, &g_status));
  OK(MPI_File_get_position(g_file, &position));
  CHECK(position == own_place() + (int)sizeof(int));
  rewind_own();
  OK(MPI_File_read(g_file, &g_in, 1, MPI_INT, &g_status));
  check_value();
  next_value();
  rewind_own();
  OK(MPI_File_write_all(g_file, &g_out, 1, MPI_INT, &g_status));
  rewind_own();
  OK(MPI_File_read_all(g_file, &g_in, 1, MPI_INT, &g_status));
  check_value();
  next_value();
  rewind_own();
  OK(MPI_File_iwrite(g_file, &g_out, 1, MPI_INT, &g_request));
  finish();
  rewind_own();
  OK(MPI_File_iread(g_file, &g_in, 1, MPI_INT, &g_request));
  finish();
  check_value();
  next_value();
  rewind_own();
  OK(MPI_File_iwrite_all(g_file, &g_out, 1, MPI_INT, &g_request));
  finish();
  rewind_own();
  OK(MPI_File_iread_all(g_file, &g_in, 1, MPI_INT, &g_request));
  finish();
  check_value();
  next_value();
  rewind_own();
  OK(MPI_File_write_all_begin(g_file, &g_out, 1, MPI_INT));
  OK(MPI_File_write_all_end(g_file, &g_out, &g_status));
  rewind_own();
  OK(MPI_File_read_all_begin(g_file, &g_in, 1, MPI_INT));
  OK(MPI_File_read_all_end(g_file, &g_in, &g_status));
  check_value();
}

/// Who comes first writes first, but in the ordered forms.
static void shared_pointers(void) {
  MPI_Offset position = -1;
  next_value();
  rewind_shared();
  OK(MPI_File_write_shared(g_file, &g_out, 1, MPI_INT, &g_status));
  check_both();
  OK(MPI_File_get_position_shared(g_file, &position));
  CHECK(position == 2 * sizeof(int));
  rewind_shared();
  OK(MPI_File_read_shared(g_file, &g_in, 1, MPI_INT, &g_status));
  check_status();
  next_value();
  rewind_shared();
  OK(MPI_File_iwrite_shared(g_file, &g_out, 1, MPI_INT, &g_request));
  finish();
  check_both();
  rewind_shared();
  OK(MPI_File_iread_shared(g_file, &g_in, 1, MPI_INT, &g_request));
  finish();
  next_value();
  rewind_shared();
  OK(MPI_File_write_ordered(g_file, &g_out, 1, MPI_INT, &g_status));
  rewind_shared();
  OK(MPI_File_read_ordered(g_file, &g_in, 1, MPI_INT, &g_status));
  check_value();
  next_value();
  rewind_shared();
  OK(MPI_File_write_ordered_begin(g_file, &g_out, 1, MPI_INT));
  OK(MPI_File_write_ordered_end(g_file, &g_out, &g_status));
  rewind_shared();
  OK(MPI_File_read_ordered_begin(g_file, &g_in, 1, MPI_INT));
  OK(MPI_File_read_ordered_end(g_file, &g_in, &g_status));
  check_value();
}

static void properties(void) {
  MPI_Offset size_bytes = -1, displacement = -1;
  MPI_Datatype unit, type;
  MPI_Group group;
  MPI_Info info;
  ByteDistance extent = 0;
  int flag = -1, mode = 0, size = 0;
  char representation[MPI_MAX_DATAREP_STRING];
  OK(MPI_File_get_amode(g_file, &mode));
  CHECK(mode == (MPI_MODE_CREATE | MPI_MODE_RDWR));
  OK(MPI_File_get_group(g_file, &group));
  OK(MPI_Group_size(group, &size));
  CHECK(size == 2);
  OK(MPI_Group_free(&group));
  OK(MPI_File_get_info(g_file, &info));
  OK(MPI_File_set_info(g_file, info));
  OK(MPI_Info_free(&info));
  OK(MPI_File_set_size(g_file, 40));
  OK(MPI_File_preallocate(g_file, 48));
  settle();
  OK(MPI_File_get_size(g_file, &size_bytes));
  CHECK(size_bytes == 48);
  const int result = MPI_File_set_atomicity(g_file, 1);  // Open MPI 4.1 refuses it now and then
  OK(MPI_File_get_atomicity(g_file, &flag));
  CHECK(flag || result != MPI_SUCCESS);
  (void)MPI_File_set_atomicity(g_file, 0);
  OK(MPI_File_get_type_extent(g_file, MPI_INT, &extent));
  CHECK(extent == sizeof(int));
  OK(MPI_File_set_view(g_file, 8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  OK(MPI_File_get_view(g_file, &displacement, &unit, &type, representation));
  CHECK(displacement == 8 && strcmp(representation, "native") == 0);
  OK(MPI_File_get_byte_offset(g_file, 3, &displacement));
  CHECK(displacement == 8 + 3 * sizeof(int));
}

static int g_errors;
static void on_error(MPI_File* file, int* code, ...) {
  CHECK(*file == g_file && *code == MPI_ERR_FILE);
  ++g_errors;
}
static void handler(void) {
  MPI_Errhandler ours;
  OK(MPI_File_create_errhandler(on_error, &ours));
  OK(MPI_File_set_errhandler(g_file, ours));
  OK(MPI_File_call_errhandler(g_file, MPI_ERR_FILE));
  CHECK(g_errors == 1);
  OK(MPI_File_set_errhandler(g_file, MPI_ERRORS_RETURN));
  OK(MPI_Errhandler_free(&ours));
}

static int extent_of(MPI_Datatype type, MPI_Aint* extent, void* state) {
  (void)type;
  (void)state;
  *extent = 1;
  return MPI_SUCCESS;
}

/// Libraries may refuse it, so only that it comes back.
static void representations(void) {
#if defined(LARGE)
  (void)MPI_Register_datarep("ours", MPI_CONVERSION_FN_NULL_C, MPI_CONVERSION_FN_NULL_C, extent_of,
                             NULL);
#else
  (void)MPI_Register_datarep("ours", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent_of,
                             NULL);
#endif
}

void files(const char* folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/every.bin", folder);
  OK(MPI_File_open(W, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &g_file));
  handler();
  explicit_offsets();
  own_pointers();
  shared_pointers();
  properties();
  OK(MPI_File_close(&g_file));
  CHECK(g_file == MPI_FILE_NULL);
  if (me == 0) OK(MPI_File_delete(path, MPI_INFO_NULL));
  OK(MPI_Barrier(W));
  representations();
}
