// A library whose names are in one kind of table (CMakeLists.txt); NAME is its one function. It can
// do without what it refers to by a weak reference.
#include <stdlib.h>

extern const char* getenv_or_not(const char* name) __attribute__((weak));

const char* NAME(void) { return getenv_or_not != NULL ? getenv_or_not("HOME") : getenv("HOME"); }
