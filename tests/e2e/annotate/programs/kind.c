// An annotated program that may use an annotated library (USE_LIBRARY) and may load another one
// (argument): whatever is linked how, each of them finds AON.
#include <aon/annotate.h>
#include <stdio.h>
#ifdef LOADS_LIBRARY
#include <dlfcn.h>
#endif

void kind_other_file(void);
#ifdef USE_LIBRARY
void kind_library(void);
aon_region_t kind_region(void);
#endif

int main(int argc, char** argv) {
  (void)argc;
  (void)argv;
#ifdef USE_LIBRARY
  const aon_region_t shared = kind_region();
  aon_region_begin(shared);  // the program's own first word to AON
  aon_region_end(shared);
#endif
  AON_REGION_BEGIN("program");
  kind_other_file();
#ifdef USE_LIBRARY
  kind_library();
#endif
#ifdef LOADS_LIBRARY
  void* library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  void (*loaded)(void) = library != NULL ? (void (*)(void))dlsym(library, "kind_library") : NULL;
  if (loaded == NULL) return 3;
  loaded();
#endif
  AON_REGION_END("program");
  printf("%d\n", aon_is_present());
  return 0;
}
