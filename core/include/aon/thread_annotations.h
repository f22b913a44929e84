/// What guards which field, told so that clang's -Wthread-safety refuses code that does not keep to
/// it; https://clang.llvm.org/docs/ThreadSafetyAnalysis.html has their meaning. clang-tidy runs it
/// (.clang-tidy), and the preset clang. Other compilers see nothing.
///
/// It knows types that say they are locks: of mutex.h, process_mutex.h, not the standard library's.
/// Thread, cost: none, nothing of it is in the code.
#pragma once

#if defined(__clang__)
#define AON_THREAD_ANNOTATION_(x) __attribute__((x))
#else
#define AON_THREAD_ANNOTATION_(x)
#endif

/// Of a class: it is a lock; one that holds a lock from its constructor to its destructor.
#define AON_CAPABILITY(name) AON_THREAD_ANNOTATION_(capability(name))
#define AON_SCOPED_CAPABILITY AON_THREAD_ANNOTATION_(scoped_lockable)

/// Of a field: is read and written under this lock only.
#define AON_GUARDED_BY(lock) AON_THREAD_ANNOTATION_(guarded_by(lock))

/// Of a function: is called under these locks, without them, takes them, lets go of them.
#define AON_REQUIRES(...) AON_THREAD_ANNOTATION_(requires_capability(__VA_ARGS__))
#define AON_EXCLUDES(...) AON_THREAD_ANNOTATION_(locks_excluded(__VA_ARGS__))
#define AON_ACQUIRE(...) AON_THREAD_ANNOTATION_(acquire_capability(__VA_ARGS__))
#define AON_RELEASE(...) AON_THREAD_ANNOTATION_(release_capability(__VA_ARGS__))
/// Takes it where it returns the first argument.
#define AON_TRY_ACQUIRE(...) AON_THREAD_ANNOTATION_(try_acquire_capability(__VA_ARGS__))
/// Looks past them all, for a reason that stands beside it.
#define AON_NO_THREAD_SAFETY_ANALYSIS AON_THREAD_ANNOTATION_(no_thread_safety_analysis)
