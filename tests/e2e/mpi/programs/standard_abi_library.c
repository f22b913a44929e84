// Stands for an MPI library with the ABI of MPI 5: one process that sends to itself. Where a status
// has its bytes is its own secret. What it is asked before MPI_Init or after MPI_Finalize, or of
// handles that it does not know, ends the program, as it may.
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/mpi/programs/standard_abi.h"

#define FUNCTION(name, ...)                                                \
  int PMPI_##name(__VA_ARGS__);                                            \
  int MPI_##name(__VA_ARGS__) __attribute__((weak, alias("PMPI_" #name))); \
  int PMPI_##name(__VA_ARGS__)

enum { kSecret = 0x5a5a5a5a, kMost = 4096 };

struct StandardComm {
  int is_live;
};
struct StandardGroup {
  int is_live;
};
struct StandardRequest {
  struct StandardRequest* next;  // of the receives that wait
  void* buffer;
  MPI_Comm comm;
  int tag;  // asked for
  int is_done;
  MPI_Status status;
};
struct Message {
  struct Message* next;
  MPI_Comm comm;
  int tag;
  int bytes;
  char data[kMost];
};

static int is_live, is_over;
static struct Message* messages;
static struct StandardRequest* receives;
// As in MPICH: what is complete when it is started, by kind; 1: sends, 2: receives from nobody.
static struct StandardRequest complete[0x11];

static void must(int condition) {
  if (!condition) abort();
}
static void must_know(MPI_Comm comm) {
  must(is_live && !is_over);
  must(comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF ||
       ((uintptr_t)comm > 0xfff && comm->is_live));
}
static int size_of(MPI_Datatype type) {
  switch ((uintptr_t)type) {
    case 0x240:
    case 0x241:
    case 0x243:
    case 0x244:
    case 0x245:
    case 0x247:
    case 0x207:
    case 0x238:
      return 1;
    case 0x208:
    case 0x20c:
    case 0x248:
    case 0x249:
      return 2;
    case 0x209:
    case 0x20d:
    case 0x210:
    case 0x250:
    case 0x251:
    case 0x23c:
      return 4;
    case 0x22c:
      return 6;
    case 0x20a:
    case 0x20b:
    case 0x20e:
    case 0x20f:
    case 0x214:
    case 0x258:
    case 0x259:
    case 0x201:
    case 0x202:
    case 0x203:
    case 0x212:
    case 0x228:
    case 0x22b:
      return 8;
    case 0x229:
    case 0x22a:
      return 12;
    case 0x216:
    case 0x220:
      return 16;
    case 0x22d:
      return 20;
    case 0x224:
      return 32;
    default:
      abort();  // a type that not every library has
  }
}
static void fill(MPI_Status* status, int source, int tag, int bytes, int is_cancelled) {
  *status =
      (MPI_Status){source, tag, MPI_SUCCESS, {is_cancelled ^ kSecret, 0, 0, 0, bytes ^ kSecret}};
}
static int matches(const struct Message* message, MPI_Comm comm, int tag) {
  return message->comm == comm && (tag == MPI_ANY_TAG || message->tag == tag);
}
/// Gives the oldest message that matches to a receive.
static int deliver(struct StandardRequest* receive) {
  for (struct Message** at = &messages; *at != NULL; at = &(*at)->next) {
    struct Message* message = *at;
    if (!matches(message, receive->comm, receive->tag)) continue;
    memcpy(receive->buffer, message->data, (size_t)message->bytes);
    fill(&receive->status, 0, message->tag, message->bytes, 0);
    receive->is_done = 1;
    *at = message->next;
    free(message);
    return 1;
  }
  return 0;
}

FUNCTION(Init_thread, int* argc, char*** argv, int required, int* provided) {
  must(argc != NULL && argv != NULL && !is_live);
  is_live = 1;
  *provided = required;
  return MPI_SUCCESS;
}
FUNCTION(Abi_get_version, int* major, int* minor) {
  *major = 1;
  *minor = 0;
  return MPI_SUCCESS;
}
FUNCTION(Error_class, int code, int* error_class) {
  *error_class = code & 0xff;
  return MPI_SUCCESS;
}
FUNCTION(Init, int* argc, char*** argv) {
  int provided;
  return PMPI_Init_thread(argc, argv, 0, &provided);
}
FUNCTION(Query_thread, int* provided) {
  must(is_live);
  *provided = MPI_THREAD_MULTIPLE;
  return MPI_SUCCESS;
}
FUNCTION(Initialized, int* flag) {
  *flag = is_live;
  return MPI_SUCCESS;
}
FUNCTION(Finalized, int* flag) {
  *flag = is_over;
  return MPI_SUCCESS;
}
FUNCTION(Finalize, void) {
  must_know(MPI_COMM_WORLD);
  is_over = 1;
  return MPI_SUCCESS;
}
FUNCTION(Comm_rank, MPI_Comm comm, int* rank) {
  must_know(comm);
  *rank = 0;
  return MPI_SUCCESS;
}
FUNCTION(Comm_size, MPI_Comm comm, int* size) {
  must_know(comm);
  *size = 1;
  return MPI_SUCCESS;
}
FUNCTION(Comm_test_inter, MPI_Comm comm, int* flag) {
  must_know(comm);
  *flag = 0;
  return MPI_SUCCESS;
}
FUNCTION(Comm_group, MPI_Comm comm, MPI_Group* group) {
  must_know(comm);
  *group = calloc(1, sizeof(struct StandardGroup));
  (*group)->is_live = 1;
  return MPI_SUCCESS;
}
FUNCTION(Comm_dup, MPI_Comm comm, MPI_Comm* copy) {
  must_know(comm);
  *copy = calloc(1, sizeof(struct StandardComm));
  (*copy)->is_live = 1;
  return MPI_SUCCESS;
}
FUNCTION(Comm_set_name, MPI_Comm comm, const char* name) {
  must_know(comm);
  must(name != NULL);
  return MPI_SUCCESS;
}
FUNCTION(Comm_free, MPI_Comm* comm) {
  must_know(*comm);
  (*comm)->is_live = 0;  // its memory stays: a question about it is found out
  *comm = MPI_COMM_NULL;
  return MPI_SUCCESS;
}
FUNCTION(Group_size, MPI_Group group, int* size) {
  must(group->is_live);
  *size = 1;
  return MPI_SUCCESS;
}
FUNCTION(Group_translate_ranks, MPI_Group from, int count, const int* ranks, MPI_Group to,
         int* out) {
  must(from->is_live && to->is_live);
  for (int i = 0; i < count; ++i) out[i] = ranks[i];
  return MPI_SUCCESS;
}
FUNCTION(Group_free, MPI_Group* group) {
  must((*group)->is_live);
  (*group)->is_live = 0;
  *group = MPI_GROUP_NULL;
  return MPI_SUCCESS;
}
FUNCTION(Type_size, MPI_Datatype datatype, int* size) {
  must_know(MPI_COMM_WORLD);
  *size = size_of(datatype);
  return MPI_SUCCESS;
}
FUNCTION(Irecv, void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
         MPI_Request* request) {
  must_know(comm);
  must(count * size_of(type) <= kMost);
  if (from == MPI_PROC_NULL) {
    *request = &complete[2];
    fill(&(*request)->status, MPI_PROC_NULL, MPI_ANY_TAG, 0, 0);
    (*request)->is_done = 1;
    return MPI_SUCCESS;
  }
  struct StandardRequest* receive = calloc(1, sizeof *receive);
  receive->buffer = buffer;
  receive->comm = comm;
  receive->tag = tag;
  if (!deliver(receive)) {
    struct StandardRequest** last = &receives;
    while (*last != NULL) last = &(*last)->next;
    *last = receive;
  }
  *request = receive;
  return MPI_SUCCESS;
}
FUNCTION(Isend, const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
         MPI_Request* request) {
  must_know(comm);
  *request = &complete[1];
  fill(&(*request)->status, 0, 0, 0, 0);
  (*request)->is_done = 1;
  if (to == MPI_PROC_NULL) return MPI_SUCCESS;
  must(to == 0 && count * size_of(type) <= kMost);
  struct Message* message = calloc(1, sizeof *message);
  message->comm = comm;
  message->tag = tag;
  message->bytes = count * size_of(type);
  memcpy(message->data, buffer, (size_t)message->bytes);
  struct Message** last = &messages;
  while (*last != NULL) last = &(*last)->next;
  *last = message;
  for (struct StandardRequest** at = &receives; *at != NULL; at = &(*at)->next) {
    if (!deliver(*at)) continue;
    *at = (*at)->next;
    break;
  }
  return MPI_SUCCESS;
}
FUNCTION(Wait, MPI_Request* request, MPI_Status* status) {
  must_know(MPI_COMM_WORLD);
  if (*request == MPI_REQUEST_NULL) return MPI_SUCCESS;
  must((*request)->is_done);
  if (status != MPI_STATUS_IGNORE) *status = (*request)->status;
  if (*request < &complete[0] || *request > &complete[0x10]) free(*request);
  *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}
FUNCTION(Waitall, int count, MPI_Request* requests, MPI_Status* statuses) {
  for (int i = 0; i < count; ++i)
    PMPI_Wait(&requests[i], statuses != MPI_STATUSES_IGNORE ? &statuses[i] : MPI_STATUS_IGNORE);
  return MPI_SUCCESS;
}
FUNCTION(Send, const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  MPI_Request request;
  PMPI_Isend(buffer, count, type, to, tag, comm, &request);
  return PMPI_Wait(&request, MPI_STATUS_IGNORE);
}
FUNCTION(Recv, void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
         MPI_Status* status) {
  MPI_Request request;
  PMPI_Irecv(buffer, count, type, from, tag, comm, &request);
  return PMPI_Wait(&request, status);
}
FUNCTION(Cancel, MPI_Request* request) {
  struct StandardRequest* receive = *request;
  for (struct StandardRequest** at = &receives; *at != NULL; at = &(*at)->next) {
    if (*at != receive) continue;
    *at = receive->next;
    fill(&receive->status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, 1);
    receive->is_done = 1;
    break;
  }
  return MPI_SUCCESS;
}
FUNCTION(Test_cancelled, const MPI_Status* status, int* flag) {
  *flag = status->MPI_internal[0] ^ kSecret;
  must(*flag == 0 || *flag == 1);  // else it is no status of ours
  return MPI_SUCCESS;
}
FUNCTION(Get_count_c, const MPI_Status* status, MPI_Datatype type, MPI_Count* count) {
  *count = (status->MPI_internal[4] ^ kSecret) / size_of(type);
  return MPI_SUCCESS;
}
FUNCTION(Get_count, const MPI_Status* status, MPI_Datatype type, int* count) {
  MPI_Count large;
  PMPI_Get_count_c(status, type, &large);
  *count = (int)large;
  return MPI_SUCCESS;
}
FUNCTION(Barrier, MPI_Comm comm) {
  must_know(comm);
  return MPI_SUCCESS;
}
FUNCTION(Allreduce, const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
         MPI_Comm comm) {
  must_know(comm);
  must(op == MPI_SUM);
  if (in != MPI_IN_PLACE) memcpy(out, in, (size_t)count * (size_t)size_of(type));
  return MPI_SUCCESS;
}
