/* NVIDIA's driver for the programs of this folder: its functions by name, one device, one context
 * and one stream, kernels from PTX. Needs neither a toolkit nor a header of CUDA, so that a program
 * is built anywhere and carried to a machine with a GPU. An error ends the program with 1; where
 * there is no driver or no device it exits with 77.
 * Thread: the only one. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct Driver {
  int (*init)(unsigned flags);
  int (*get_device)(int* device, int ordinal);
  int (*get_attribute)(int* value, int attribute, int device);
  int (*retain_context)(void** context, int device);
  int (*set_context)(void* context);
  int (*wait_for_context)(void);
  int (*load_module)(void** module, const void* ptx);
  int (*get_function)(void** kernel, void* module, const char* name);
  int (*allocate)(uint64_t* address, size_t bytes);
  int (*allocate_on_host)(void** address, size_t bytes, unsigned flags);
  int (*create_stream)(void** stream, unsigned flags);
  int (*launch)(void* kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream,
                void** arguments, void** extra);
  int (*copy_on_device)(uint64_t to, uint64_t from, size_t bytes, void* stream);
  int (*copy_to_device)(uint64_t to, const void* from, size_t bytes, void* stream);
  int (*create_event)(void** event, unsigned flags);
  int (*record_event)(void* event, void* stream);
  int (*elapsed_ms)(float* ms, void* begin, void* end);
  int (*begin_capture)(void* stream, int mode);
  int (*end_capture)(void* stream, void** graph);
  int (*instantiate)(void** ready, void* graph, unsigned long long flags);
  int (*launch_graph)(void* ready, void* stream);
} Driver;

extern Driver driver;
extern void* work_stream; /* does not wait for the default one */

/* Finds the functions, makes the context current; `work_stream` is there afterwards. */
void open_driver(void);
/* Of the device: 90 is compute capability 9.0. */
int compute_capability(void);
/* Ends the program where `error` is one. */
void check(int error, const char* what);
void* find_kernel(const char* ptx, const char* name);
uint64_t allocate(size_t bytes);
/* `threads` of each block run `kernel(out, rounds)`. */
void launch(void* kernel, unsigned blocks, unsigned threads, uint64_t out, uint64_t rounds);
void wait_for_device(void);

/* PTX of tests/gpu/kernels.c. kSpin has `spin`, `spin_longer` and `hold`, which are alike, and
 * `nothing`; kMatrix has `matrix`. All take (out, rounds). */
extern const char kSpin[];
extern const char kMatrix[];
