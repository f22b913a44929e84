// An annotated library.
#include <aon/annotate.h>

void kind_library(void);
void kind_library(void) {
  AON_REGION_BEGIN("library");
  AON_REGION_END("library");
}
