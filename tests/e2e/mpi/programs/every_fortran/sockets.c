// A pair of connected sockets, for MPI_Comm_join. Fortran's names.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in loopback(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void every_listen_(int* end, int* port) {
  struct sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  *end = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(*end, (struct sockaddr*)&address, length) != 0 || listen(*end, 1) != 0) abort();
  if (getsockname(*end, (struct sockaddr*)&address, &length) != 0) abort();
  *port = ntohs(address.sin_port);
}

void every_accept_(int* end) {
  const int listening = *end;
  *end = accept(listening, NULL, NULL);
  close(listening);
}

void every_connect_(int* end, const int* port) {
  const struct sockaddr_in address = loopback(*port);
  *end = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(*end, (const struct sockaddr*)&address, sizeof address) != 0) abort();
}
