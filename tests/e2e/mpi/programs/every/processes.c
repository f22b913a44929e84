// Processes that find each other and that start others.
#include "tests/e2e/mpi/programs/every/every.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static void greet_and_leave(MPI_Comm* between) {
  int in = -1, size = 0;
  OK(MPI_Comm_remote_size(*between, &size));
  CHECK(size == 1);
  OK(MPI_Sendrecv(&me, 1, MPI_INT, 0, 1, &in, 1, MPI_INT, 0, 1, *between, MPI_STATUS_IGNORE));
  CHECK(in == other);
  OK(MPI_Comm_disconnect(between));
  CHECK(*between == MPI_COMM_NULL);
}

/// Rank 0 publishes a port under a name, which rank 1 looks up.
static void ports(void) {
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm between;
  if (me == 0) {
    OK(MPI_Open_port(MPI_INFO_NULL, port));
    OK(MPI_Publish_name("aon-every", MPI_INFO_NULL, port));
    OK(MPI_Barrier(W));
    OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &between));
  } else {
    OK(MPI_Barrier(W));
    OK(MPI_Lookup_name("aon-every", MPI_INFO_NULL, port));
    OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &between));
  }
  greet_and_leave(&between);
  if (me == 0) {
    OK(MPI_Unpublish_name("aon-every", MPI_INFO_NULL, port));
    OK(MPI_Close_port(port));
  }
}

/// A connected pair of sockets, one end on each rank.
static int connected_socket(void) {
  struct sockaddr_in address = {.sin_family = AF_INET};
  socklen_t length = sizeof address;
  const int own = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(own >= 0);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (me == 1) {
    OK(MPI_Recv(&address.sin_port, 1, MPI_UNSIGNED_SHORT, 0, 2, W, MPI_STATUS_IGNORE));
    CHECK(connect(own, (struct sockaddr*)&address, length) == 0);
    return own;
  }
  CHECK(bind(own, (struct sockaddr*)&address, length) == 0 && listen(own, 1) == 0);
  CHECK(getsockname(own, (struct sockaddr*)&address, &length) == 0);
  OK(MPI_Send(&address.sin_port, 1, MPI_UNSIGNED_SHORT, 1, 2, W));
  const int end = accept(own, NULL, NULL);
  CHECK(end >= 0);
  close(own);
  return end;
}

static void joined(void) {
  MPI_Comm between;
  const int end = connected_socket();
  OK(MPI_Comm_join(end, &between));
  greet_and_leave(&between);
  close(end);
}

static void greet_children(MPI_Comm* children, int count) {
  int value = 17, size = 0;
  OK(MPI_Comm_remote_size(*children, &size));
  CHECK(size == count);
  OK(MPI_Bcast(&value, 1, MPI_INT, MPI_ROOT, *children));
  OK(MPI_Comm_disconnect(children));
}

/// By rank 0 alone: where several spawn, Open MPI 4.1 divides by zero now and then.
static void spawned(const char* program) {
  char path[4096];
  char* arguments[] = {"child", NULL};
  char* commands[2] = {path, path};
  char** argument_lists[2] = {arguments, arguments};
  const int counts[2] = {1, 1};
  const MPI_Info hints[2] = {MPI_INFO_NULL, MPI_INFO_NULL};
  int errors[2] = {-1, -1};
  MPI_Comm children;
  snprintf(path, sizeof path, "%s", program);
  OK(MPI_Comm_spawn(path, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &children, errors));
  CHECK(errors[0] == MPI_SUCCESS);
  greet_children(&children, 1);
  OK(MPI_Comm_spawn_multiple(2, commands, argument_lists, counts, hints, 0, MPI_COMM_SELF,
                             &children, errors));
  greet_children(&children, 2);
}

/// A library whose network has no way to meet or start others refuses each call; none may go on.
static void refused(const char* program) {
  char port[MPI_MAX_PORT_NAME] = "none", name[32], path[4096];
  char* commands[1] = {path};
  int error = 0, flag = 1;
  MPI_Comm made = MPI_COMM_NULL;
  snprintf(path, sizeof path, "%s", program);
  snprintf(name, sizeof name, "aon-refused-%d", me);
  OK(MPI_Publish_name(name, MPI_INFO_NULL, port));
  OK(MPI_Lookup_name(name, MPI_INFO_NULL, port));
  CHECK(strcmp(port, "none") == 0);
  OK(MPI_Unpublish_name(name, MPI_INFO_NULL, port));
  CHECK(MPI_Close_port(port) != MPI_SUCCESS);
  CHECK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made) != MPI_SUCCESS);
  CHECK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made) != MPI_SUCCESS);
  CHECK(MPI_Comm_join(-1, &made) != MPI_SUCCESS);
  CHECK(MPI_Comm_spawn(path, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made, &error) !=
        MPI_SUCCESS);
  CHECK(MPI_Comm_spawn_multiple(1, commands, MPI_ARGVS_NULL, (const int[]){1},
                                (const MPI_Info[]){MPI_INFO_NULL}, 0, MPI_COMM_SELF, &made,
                                &error) != MPI_SUCCESS);
  OK(MPI_Comm_test_inter(W, &flag));
  CHECK(!flag && made == MPI_COMM_NULL);
}

void processes(const char* program) {
  char port[MPI_MAX_PORT_NAME] = "";
  OK(MPI_Comm_set_errhandler(W, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  if (MPI_Open_port(MPI_INFO_NULL, port) != MPI_SUCCESS) {
    refused(program);
    return;
  }
  OK(MPI_Close_port(port));
  ports();
  joined();
  if (me == 0) spawned(program);
}
