// Two jobs of two ranks that connect: `connected server FILE` opens a port and writes its name to
// FILE; `connected client FILE` waits for it. Rank r of each sends 3 + r doubles (tag 1) to rank r
// of the other, which is in no world of its own; then all broadcast 8 doubles from rank 1 of the
// servers, and merge; the ranks 0 join by a socket, if the library can, and send an int (tag 2).
// Within, each job sends 2 doubles from rank 0 to rank 1 (tag 3).
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/e2e/mpi/programs/check.h"

static int is_server;
static double g_words[8];

static void exchange(MPI_Comm comm) {
  const int rank = world_rank();
  double in[8];
  MPI_Request request;
  MPI_Status status;
  int count;
  MPI_Irecv(in, 8, MPI_DOUBLE, MPI_ANY_SOURCE, 1, comm, &request);
  MPI_Send(g_words, 3 + rank, MPI_DOUBLE, rank, 1, comm);
  MPI_Wait(&request, &status);
  MPI_Get_count(&status, MPI_DOUBLE, &count);
  CHECK(status.MPI_SOURCE == rank && count == 3 + rank);
  const int root = !is_server ? 1 : rank == 1 ? MPI_ROOT : MPI_PROC_NULL;
  MPI_Bcast(g_words, 8, MPI_DOUBLE, root, comm);
}

static void merge(MPI_Comm comm) {
  MPI_Comm all;
  int sum = 0;
  const int one = 1;
  MPI_Intercomm_merge(comm, !is_server, &all);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
  CHECK(sum == 4);
  MPI_Comm_free(&all);
}

static void within(void) {
  if (world_rank() == 0) MPI_Send(g_words, 2, MPI_DOUBLE, 1, 3, MPI_COMM_WORLD);
  if (world_rank() == 1) MPI_Recv(g_words, 2, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/// A pair of sockets' ends, by a name beside FILE.
static int open_socket(const char* path) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  snprintf(name.sun_path, sizeof name.sun_path, "%s.s", path);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  const struct sockaddr* address = (const struct sockaddr*)&name;
  CHECK(fd >= 0);
  if (!is_server) {
    while (connect(fd, address, sizeof name) != 0) {
      CHECK(errno == ENOENT || errno == ECONNREFUSED);
      usleep(1000);
    }
    return fd;
  }
  CHECK(bind(fd, address, sizeof name) == 0 && listen(fd, 1) == 0);
  const int accepted = accept(fd, NULL, NULL);
  close(fd);
  return accepted;
}

static void join(const char* path) {
  const int fd = open_socket(path);
  MPI_Comm comm;
  int value = 5;
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  const int result = MPI_Comm_join(fd, &comm);
  close(fd);
  printf("%s: %s\n", is_server ? "server" : "client", result == 0 ? "joined" : "cannot join");
  if (result != MPI_SUCCESS) return;
  if (is_server) MPI_Send(&value, 1, MPI_INT, 0, 2, comm);
  if (!is_server) MPI_Recv(&value, 1, MPI_INT, 0, 2, comm, MPI_STATUS_IGNORE);
  MPI_Comm_disconnect(&comm);
}

static void wait_for_port(const char* path, char* port) {
  FILE* file = NULL;
  while ((file = fopen(path, "r")) == NULL) usleep(1000);
  CHECK(fgets(port, MPI_MAX_PORT_NAME, file) != NULL);
  fclose(file);
}

static void open_port(const char* path, char* port) {
  char name[4096];
  snprintf(name, sizeof name, "%s.part", path);
  MPI_Open_port(MPI_INFO_NULL, port);
  FILE* file = fopen(name, "w");
  CHECK(file != NULL && fputs(port, file) >= 0 && fclose(file) == 0);
  CHECK(rename(name, path) == 0);
}

int main(int argc, char** argv) {
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm comm;
  MPI_Init(&argc, &argv);
  if (argc == 2) {  // `connected port`: whether there are any
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Finalize();
    return 0;
  }
  CHECK(argc == 3 && world_count() == 2);
  is_server = strcmp(argv[1], "server") == 0;
  within();
  if (world_rank() == 0) (is_server ? open_port : wait_for_port)(argv[2], port);
  if (is_server) MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &comm);
  if (!is_server) MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &comm);
  if (is_server && world_rank() == 0) MPI_Close_port(port);
  exchange(comm);
  merge(comm);
  if (world_rank() == 0) join(argv[2]);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Comm_disconnect(&comm);
  MPI_Finalize();
  return 0;
}
