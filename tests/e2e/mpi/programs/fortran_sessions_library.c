// Stands for Open MPI 5, whose sessions are pointers in C and numbers in Fortran: one process, and
// as much of mpi_f08 and of C as a program without MPI_Init needs. A session that was not begun
// ends the program.
#include <stdlib.h>
#include <string.h>

#define WEAK_NAME(name) __attribute__((weak, alias("PMPI_" #name)))
#define FUNCTION(name, ...)                    \
  int PMPI_##name(__VA_ARGS__);                \
  int MPI_##name(__VA_ARGS__) WEAK_NAME(name); \
  int PMPI_##name(__VA_ARGS__)

enum { kMost = 8, kNumber = 5 };  // the numbers of handles begin there

struct Object {
  int is_live;
};
struct Object ompi_mpi_comm_world, ompi_mpi_comm_self, ompi_mpi_comm_null, ompi_request_null;
struct Object ompi_request_empty, ompi_mpi_datatype_null, ompi_mpi_group_null, ompi_mpi_win_null;
struct Object ompi_mpi_op_no_op, ompi_message_null, ompi_message_no_proc;
struct Object ompi_mpi_integer, ompi_mpi_byte, ompi_mpi_int;
static struct Object sessions[kMost], groups[kMost], comms[kMost];

static void must_live(struct Object* all, const void* handle) {
  const struct Object* object = handle;
  if (object < all || object >= all + kMost || !object->is_live) abort();
}
static void make(struct Object* all, struct Object** made) {
  for (*made = all; (*made)->is_live; ++*made) {
  }
  (*made)->is_live = 1;
}
/// MPI_Status of Open MPI.
struct Status {
  int source, tag, error, is_cancelled;
  size_t byte_count;
};
struct Exchange {  // a request
  struct Object object;
  struct Status status;
};
static struct Exchange exchanges[kMost];

static int number_of(const struct Object* all, const struct Object* object) {
  return kNumber + (int)(object - all);
}

FUNCTION(Init, int* argc, char*** argv) { return argc == 0 || argv == 0; }
FUNCTION(Finalize, void) { return 0; }
FUNCTION(Initialized, int* flag) { return *flag = 0; }
FUNCTION(Finalized, int* flag) { return *flag = 0; }
FUNCTION(Type_size, void* type, int* size) {
  *size = type == &ompi_mpi_byte ? 1 : 4;
  return 0;
}
FUNCTION(Type_c2f, void* type) { return type == &ompi_mpi_integer ? 7 : 8; }
FUNCTION(Comm_c2f, void* comm) { return comm == &ompi_mpi_comm_world ? 0 : 1; }
struct Object* PMPI_Comm_f2c(int comm) {
  return comm < kNumber ? &ompi_mpi_comm_null : &comms[comm - kNumber];
}
struct Object* PMPI_Session_f2c(int session) {
  if (session < kNumber || session >= kNumber + kMost) abort();
  return &sessions[session - kNumber];
}
FUNCTION(Session_init, void* info, void* handler, struct Object** session) {
  make(sessions, session);
  return info == handler && info != 0;
}
FUNCTION(Session_finalize, struct Object** session) {
  must_live(sessions, *session);
  (*session)->is_live = 0;
  *session = 0;
  return 0;
}
FUNCTION(Group_from_session_pset, void* session, const char* name, struct Object** group) {
  must_live(sessions, session);
  if (strcmp(name, "mpi://WORLD") != 0) abort();
  make(groups, group);
  return 0;
}
FUNCTION(Group_free, struct Object** group) {
  must_live(groups, *group);
  (*group)->is_live = 0;
  return 0;
}
FUNCTION(Group_rank, void* group, int* rank) {
  must_live(groups, group);
  return *rank = 0;
}
FUNCTION(Group_size, void* group, int* size) {
  must_live(groups, group);
  *size = 1;
  return 0;
}
FUNCTION(Group_translate_ranks, void* from, int count, const int* ranks, void* to, int* out) {
  must_live(groups, from);
  must_live(groups, to);
  memcpy(out, ranks, (size_t)count * sizeof *out);
  return 0;
}
FUNCTION(Comm_group, void* comm, struct Object** group) {
  must_live(comms, comm);
  make(groups, group);
  return 0;
}
FUNCTION(Comm_rank, void* comm, int* rank) {
  must_live(comms, comm);
  return *rank = 0;
}
FUNCTION(Comm_size, void* comm, int* size) {
  must_live(comms, comm);
  *size = 1;
  return 0;
}
FUNCTION(Comm_create_from_group, void* group, const char* tag, void* info, void* handler,
         struct Object** comm) {
  must_live(groups, group);
  make(comms, comm);
  return info != handler || strcmp(tag, "tag") != 0;
}
/// Of bytes, to itself.
FUNCTION(Isendrecv, const void* out, int count, void* type, int to, int tag, void* in, int room,
         void* in_type, int from, int in_tag, void* comm, struct Exchange** request) {
  must_live(comms, comm);
  if (type != &ompi_mpi_byte || in_type != type || to != 0 || from != 0) abort();
  if (in_tag != tag || room < count) abort();
  for (*request = exchanges; (*request)->object.is_live; ++*request) {
  }
  **request = (struct Exchange){{1}, {0, tag, 0, 0, (size_t)count}};
  memcpy(in, out, (size_t)count);
  return 0;
}
FUNCTION(Wait, struct Object** request, struct Status* status) {
  struct Exchange* ended = (struct Exchange*)*request;
  if (status != 0) *status = ended->status;
  ended->object.is_live = 0;
  *request = &ompi_request_null;
  return 0;
}

// mpi_f08, which in Open MPI calls the PMPI names.
void mpi_session_init_f08_(int* info, int* handler, int* session, int* error) {
  struct Object* made;
  if (*info != 0 || *handler != 2) abort();
  PMPI_Session_init(0, 0, &made);
  *session = number_of(sessions, made);
  if (error != 0) *error = 0;
}
void mpi_session_finalize_f08_(int* session, int* error) {
  struct Object* ended = PMPI_Session_f2c(*session);
  PMPI_Session_finalize(&ended);
  *session = 0;
  if (error != 0) *error = 0;
}
void mpi_group_from_session_pset_f08_(int* session, char* name, int* group, int* error,
                                      size_t length) {
  struct Object* made;
  if (length != 11 || strncmp(name, "mpi://WORLD", length) != 0) abort();
  PMPI_Group_from_session_pset(PMPI_Session_f2c(*session), "mpi://WORLD", &made);
  *group = number_of(groups, made);
  if (error != 0) *error = 0;
}
void mpi_comm_create_from_group_f08_(int* group, char* tag, int* info, int* handler, int* comm,
                                     int* error, size_t length) {
  struct Object* made;
  must_live(groups, &groups[*group - kNumber]);
  if (length != 3 || strncmp(tag, "tag", length) != 0 || *info != 0 || *handler != 2) abort();
  make(comms, &made);
  *comm = number_of(comms, made);
  if (error != 0) *error = 0;
}
void mpi_barrier_f08_(int* comm, int* error) {
  must_live(comms, &comms[*comm - kNumber]);
  if (error != 0) *error = 0;
}
