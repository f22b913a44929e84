// Five ranks in two groups of unlike size, in another order than in the world: messages of every
// form and collectives between the groups, over an inter-communicator, a second one of the same
// members, copies and parts of it, and what it is merged into.
//
//   evens: world ranks 4 2 0      odds: world ranks 3 1
//
// Between the groups goes, on each inter-communicator: from each even one to the odd one of its
// number modulo 2 four messages (tags 1 to 4), and one exchange (tag 5) between those of the same
// number. Within what is merged: one message (tag 6) from each rank to the next.
#include "tests/e2e/mpi/programs/check.h"

static int is_odd;

static void send_all(MPI_Comm comm, int to) {
  int value = 7;
  MPI_Request request;
  MPI_Send(&value, 1, MPI_INT, to, 1, comm);
  MPI_Ssend(&value, 1, MPI_INT, to, 2, comm);
  MPI_Isend(&value, 1, MPI_INT, to, 3, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Send_init(&value, 1, MPI_INT, to, 4, comm, &request);
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
}

static void receive_all(MPI_Comm comm, int senders) {
  int value = 0;
  MPI_Status status;
  MPI_Request request;
  for (int i = 0; i < senders; ++i) MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 1, comm, &status);
  for (int i = 0; i < senders; ++i) {
    MPI_Probe(MPI_ANY_SOURCE, 2, comm, &status);
    MPI_Recv(&value, 1, MPI_INT, status.MPI_SOURCE, 2, comm, MPI_STATUS_IGNORE);
  }
  for (int tag = 3; tag <= 4; ++tag) {
    for (int i = 0; i < senders; ++i) {
      MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, tag, comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      CHECK(value == 7);
    }
  }
}

static void messages(MPI_Comm comm) {
  int own, count, others;
  MPI_Comm_rank(comm, &own);
  MPI_Comm_size(comm, &count);
  MPI_Comm_remote_size(comm, &others);
  if (is_odd) {
    receive_all(comm, (others + 1 - own) / 2);
  } else {
    send_all(comm, own % 2);
  }
  int out = own, in = -1;
  if (own < others && own < 2)
    MPI_Sendrecv(&out, 1, MPI_INT, own, 5, &in, 1, MPI_INT, own, 5, comm, MPI_STATUS_IGNORE);
}

static void collectives(MPI_Comm comm) {
  int own, value = 3, sum = 0;
  int all[8];
  MPI_Request request;
  MPI_Comm_rank(comm, &own);
  MPI_Barrier(comm);
  // From the second even one to all odd ones.
  const int root = is_odd ? 1 : own == 1 ? MPI_ROOT : MPI_PROC_NULL;
  MPI_Bcast(&value, 1, MPI_INT, root, comm);
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
  MPI_Allgather(&value, 1, MPI_INT, all, 1, MPI_INT, comm);
  // From all even ones to the first odd one.
  const int sink = !is_odd ? 0 : own == 0 ? MPI_ROOT : MPI_PROC_NULL;
  MPI_Gather(&value, 1, MPI_INT, all, 1, MPI_INT, sink, comm);
  MPI_Ibarrier(comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void within(MPI_Comm comm) {
  int own, count, out = 1, in = 0;
  MPI_Comm_rank(comm, &own);
  MPI_Comm_size(comm, &count);
  MPI_Request request;
  MPI_Irecv(&in, 1, MPI_INT, (own + count - 1) % count, 6, comm, &request);
  MPI_Send(&out, 1, MPI_INT, (own + 1) % count, 6, comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Bcast(&out, 1, MPI_INT, count - 1, comm);
  MPI_Allreduce(&out, &in, 1, MPI_INT, MPI_SUM, comm);
  CHECK(in == count);
}

static void use(MPI_Comm* comm, const char* name, void (*talk)(MPI_Comm)) {
  MPI_Comm_set_name(*comm, name);
  talk(*comm);
  if (talk == messages) collectives(*comm);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int rank = world_rank();
  CHECK(world_count() == 5);
  is_odd = rank % 2;
  MPI_Comm half, first, second, copy, part, merged;
  MPI_Comm_split(MPI_COMM_WORLD, is_odd, -rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, is_odd ? 4 : 3, 11, &first);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, is_odd ? 4 : 3, 12, &second);
  use(&first, "first", messages);
  use(&second, "second", messages);
  MPI_Comm_dup(first, &copy);
  use(&copy, "copy", messages);
  int own;
  MPI_Comm_rank(first, &own);
  MPI_Comm_split(first, 0, -own, &part);  // turned round
  use(&part, "part", messages);
  for (int high = 0; high < 2; ++high) {
    MPI_Intercomm_merge(first, is_odd == high, &merged);
    use(&merged, high ? "odds last" : "odds first", within);
    MPI_Comm_free(&merged);
  }
  MPI_Comm_free(&part);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&second);
  MPI_Comm_free(&first);
  MPI_Comm_free(&half);
  MPI_Finalize();
  return 0;
}
