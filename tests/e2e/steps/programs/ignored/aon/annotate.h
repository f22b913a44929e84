/* In place of AON's header: the annotations of a program come to nothing, so that its steps must be
 * found in its MPI calls. */
#ifndef AON_TESTS_IGNORED_ANNOTATE_H
#define AON_TESTS_IGNORED_ANNOTATE_H

#define AON_REGION_BEGIN(name) ((void)0)
#define AON_REGION_END(name) ((void)0)
#define aon_step_begin(number) ((void)(number))
#define aon_step_end() ((void)0)
#define aon_counter(name, unit) 0
#define aon_counter_set(counter, value) ((void)(value))

#endif
