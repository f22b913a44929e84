// An annotated library.
#include <aon/annotate.h>

void kind_library(void);
aon_region_t kind_region(void);

/// A region for others, who may not have looked for AON yet.
aon_region_t kind_region(void) { return aon_region("of the library"); }

void kind_library(void) {
  AON_REGION_BEGIN("library");
  AON_REGION_END("library");
}
