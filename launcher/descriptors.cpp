#include "launcher/descriptors.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <utility>

#include "core/base/descriptors.h"

namespace aon::launcher {
void keep_descriptors(std::vector<int> kept) {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null >= 0) {
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
  }
  close_descriptors_but(std::move(kept));
}

void close_all_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) close(fd);
  close_descriptors_but({});
}

}  // namespace aon::launcher
