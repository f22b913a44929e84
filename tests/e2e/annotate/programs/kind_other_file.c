// A second source file of the same program.
#include <aon/annotate.h>

void kind_other_file(void);
void kind_other_file(void) {
  AON_REGION_BEGIN("other file");
  AON_REGION_END("other file");
}
