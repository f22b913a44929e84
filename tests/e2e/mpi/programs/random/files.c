/// Steps of one file: opened by all members of a communicator, written and read in random ways, and
/// closed.
#include "tests/e2e/mpi/programs/random/random.h"

typedef struct {
  MPI_File file;
  const Comm* c;
  int id;
} File;

static void tell_moved(const File* f, bool is_read, bool is_collective, const MPI_Status* status) {
  int bytes;
  PMPI_Get_count(status, MPI_BYTE, &bytes);
  tell("io %d %s %d %d", f->id, is_read ? "read" : "write", bytes, is_collective);
}

static void alone(State* s, const File* f) {
  const int way = below(&s->own, 6), n = below(&s->own, 200);
  int* data = buffer(s, 800);
  const MPI_Offset at = below(&s->own, 1000);
  MPI_Status status;
  if (way == 0) DO(File_write_at, f->file, at, data, n, MPI_INT, &status);
  if (way == 1) DO(File_read_at, f->file, at, data, n, MPI_INT, &status);
  if (way == 2) DO(File_write, f->file, data, n, MPI_INT, &status);
  if (way == 3) DO(File_read, f->file, data, n, MPI_INT, &status);
  if (way == 4) DO(File_write_shared, f->file, data, n, MPI_INT, &status);
  if (way == 5) {
    DO(File_seek, f->file, at, MPI_SEEK_SET);
    return;
  }
  tell_moved(f, way == 1 || way == 3, false, &status);
}

static void begun(State* s, const File* f) {
  const int way = below(&s->own, 4), n = 1 + below(&s->own, 199);
  int* data = buffer(s, 800);
  const MPI_Offset at = below(&s->own, 1000);
  MPI_Status status;
  MPI_Request request;
  if (way == 0) DO(File_iwrite_at, f->file, at, data, n, MPI_INT, &request);
  if (way == 1) DO(File_iread_at, f->file, at, data, n, MPI_INT, &request);
  if (way == 2) DO(File_iwrite, f->file, data, n, MPI_INT, &request);
  if (way == 3) DO(File_iread, f->file, data, n, MPI_INT, &request);
  DO(Wait, &request, &status);
  tell_moved(f, way % 2 == 1, false, &status);
}

static void together(State* s, const File* f) {
  const int way = below(&s->plan, 8), n = below(&s->own, 200);
  int* data = buffer(s, 800);
  const MPI_Offset at = below(&s->own, 1000);
  MPI_Status status;
  if (way == 0) DO(File_write_at_all, f->file, at, data, n, MPI_INT, &status);
  if (way == 1) DO(File_read_at_all, f->file, at, data, n, MPI_INT, &status);
  if (way == 2) DO(File_write_all, f->file, data, n, MPI_INT, &status);
  if (way == 3) DO(File_read_all, f->file, data, n, MPI_INT, &status);
  if (way == 4) DO(File_write_ordered, f->file, data, n, MPI_INT, &status);
  if (way == 5) {
    DO(File_write_all_begin, f->file, data, n, MPI_INT);
    DO(File_write_all_end, f->file, data, &status);
  }
  if (way == 6) {
    DO(File_write_at_all_begin, f->file, at, data, n, MPI_INT);
    DO(File_write_at_all_end, f->file, data, &status);
  }
  if (way == 7) {
    DO(File_sync, f->file);
    return;
  }
  tell_moved(f, way == 1 || way == 3, true, &status);
}

void step_file(State* s) {
  Comm* c = random_comm(s, is_within_one_group);
  const int call_count = 1 + below(&s->plan, 8), has_view = chance(&s->plan, 40);
  if (!is_member(c)) return;
  File file = {.c = c, .id = c->id + s->step};
  File* f = &file;
  char name[4096];
  snprintf(name, sizeof name, "%s/file-%d", work_folder(), f->id);
  DO(File_open, c->handle, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
     MPI_INFO_NULL, &f->file);
  tell("file %d", f->id);
  DO(File_set_size, f->file, 1 << 16);  // Open MPI's reads that are begun at the end do not end
  if (has_view) DO(File_set_view, f->file, 64, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
  for (int i = 0; i < call_count; ++i) {
    const int way = below(&s->plan, 4);
    if (way == 0) together(s, f);
    if (way == 1) begun(s, f);
    if (way >= 2) alone(s, f);
  }
  DO(File_close, &f->file);
}
