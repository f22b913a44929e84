// A library that defines no name for others (CMakeLists.txt) and calls one function.
extern void CALLED(const char*, int);

__attribute__((constructor)) static void call(void) {
  if (__builtin_return_address(0) == 0) CALLED("", 0);
}
