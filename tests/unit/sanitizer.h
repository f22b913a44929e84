/// Which sanitizer a test is built with: g++ and Clang tell it in different ways.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define AON_TEST_IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define AON_TEST_IS_SANITIZED 1
#endif
#endif
