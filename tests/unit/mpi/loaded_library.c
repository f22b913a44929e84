// A library whose names are in one kind of table (CMakeLists.txt); NAME is its one function.
#include <stdlib.h>

const char* NAME(void) { return getenv("HOME"); }
