/// What is preloaded runs on the C library of each program, which in a container may be older than
/// the one that it was built with, or musl. So no symbol's version is above GLIBC_2.17 here: of
/// functions that glibc moved into libc.so.6 later (2.34, from libdl and libpthread) the old
/// versions are taken, which a newer glibc has as well; of functions that C++ gets in a new form
/// (2.38, strtol of C23) the old form. 2.17, because clock_gettime and secure_getenv are in
/// libc.so.6 since then. The compiler puts this file before each source that runs in a program
/// (aon_application_code); the test abi.libc looks at the libraries.
///
/// A symbol from what was libdl or libpthread may be missing: an old program without threads loads
/// neither. What is preloaded declares it weak, `#pragma weak dladdr` behind the includes, and asks
/// `dladdr != nullptr` first.
#pragma once

#include <features.h>

#if defined(__GLIBC__) && defined(__x86_64__) && defined(__LP64__)
#define AON_FIRST_ "GLIBC_2.2.5"
#define AON_SECOND_ "GLIBC_2.3.3"
#define AON_THIRD_ "GLIBC_2.12"
#elif defined(__GLIBC__) && defined(__aarch64__) && defined(__LP64__)
#define AON_FIRST_ "GLIBC_2.17"
#define AON_SECOND_ "GLIBC_2.17"
#define AON_THIRD_ "GLIBC_2.17"
#endif

#if defined(AON_FIRST_)
#define AON_OLD_(name, old, version) __asm__(".symver " #name ", " #old "@" version)

// NOLINTBEGIN(hicpp-no-assembler)
AON_OLD_(dladdr, dladdr, AON_FIRST_);
AON_OLD_(dladdr1, dladdr1, AON_SECOND_);
AON_OLD_(dlclose, dlclose, AON_FIRST_);
AON_OLD_(dlerror, dlerror, AON_FIRST_);
AON_OLD_(dlinfo, dlinfo, AON_SECOND_);
AON_OLD_(dlopen, dlopen, AON_FIRST_);
AON_OLD_(dlsym, dlsym, AON_FIRST_);
AON_OLD_(pthread_attr_setstacksize, pthread_attr_setstacksize, AON_FIRST_);
AON_OLD_(pthread_create, pthread_create, AON_FIRST_);
AON_OLD_(pthread_getcpuclockid, pthread_getcpuclockid, AON_FIRST_);
AON_OLD_(pthread_key_create, pthread_key_create, AON_FIRST_);
AON_OLD_(pthread_setname_np, pthread_setname_np, AON_THIRD_);
AON_OLD_(pthread_setspecific, pthread_setspecific, AON_FIRST_);
AON_OLD_(pthread_sigmask, pthread_sigmask, AON_FIRST_);
AON_OLD_(__isoc23_strtol, strtol, AON_FIRST_);
AON_OLD_(__isoc23_strtoll, strtoll, AON_FIRST_);
AON_OLD_(__isoc23_strtoul, strtoul, AON_FIRST_);
AON_OLD_(__isoc23_strtoull, strtoull, AON_FIRST_);
AON_OLD_(__isoc23_sscanf, sscanf, AON_FIRST_);
// NOLINTEND(hicpp-no-assembler)
#endif
