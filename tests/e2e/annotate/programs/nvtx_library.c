// A library with an NVTX of its own.
#ifdef REAL_NVTX
#include <nvtx3/nvToolsExt.h>
#else
#include "tests/e2e/annotate/programs/nvtx_loader.h"
#endif

void nvtx_library(void);
void nvtx_library(void) {
  nvtxRangePushA("library");
  nvtxRangePop();
}
