// C side of the Fortran module aon (aon.f90): names come with their length, blanks at their end do
// not count.
#include <aon/annotate.h>
#include <string.h>

enum { kMaxNameBytes = 1100, kMaxUnitBytes = 64 };

/// Copies a Fortran string; what is longer than `room` is cut, which libaon.so does anyway.
static const char* copy_name(char* out, size_t room, const char* name, size_t bytes) {
  if (bytes >= room) bytes = room - 1;
  while (bytes > 0 && name[bytes - 1] == ' ') --bytes;
  memcpy(out, name, bytes);
  out[bytes] = '\0';
  return out;
}

const void* aon_fortran_region(const char* name, size_t bytes);
const void* aon_fortran_region(const char* name, size_t bytes) {
  char text[kMaxNameBytes];
  if (!aon_is_present()) return NULL;
  return aon_region(copy_name(text, sizeof text, name, bytes));
}

const void* aon_fortran_counter(const char* name, size_t bytes, const char* unit,
                                size_t unit_bytes);
const void* aon_fortran_counter(const char* name, size_t bytes, const char* unit,
                                size_t unit_bytes) {
  char text[kMaxNameBytes];
  char unit_text[kMaxUnitBytes];
  if (!aon_is_present()) return NULL;
  return aon_counter(copy_name(text, sizeof text, name, bytes),
                     copy_name(unit_text, sizeof unit_text, unit, unit_bytes));
}

void aon_fortran_region_begin(const void* region);
void aon_fortran_region_begin(const void* region) { aon_region_begin((aon_region_t)region); }

void aon_fortran_region_end(const void* region);
void aon_fortran_region_end(const void* region) { aon_region_end((aon_region_t)region); }

void aon_fortran_step_begin(int64_t number);
void aon_fortran_step_begin(int64_t number) { aon_step_begin(number); }

void aon_fortran_step_end(void);
void aon_fortran_step_end(void) { aon_step_end(); }

void aon_fortran_mark(const void* region);
void aon_fortran_mark(const void* region) { aon_mark((aon_region_t)region); }

void aon_fortran_mark_integer(const void* region, int64_t value);
void aon_fortran_mark_integer(const void* region, int64_t value) {
  aon_mark_integer((aon_region_t)region, value);
}

void aon_fortran_mark_real(const void* region, double value);
void aon_fortran_mark_real(const void* region, double value) {
  aon_mark_real((aon_region_t)region, value);
}

void aon_fortran_counter_set(const void* counter, double value);
void aon_fortran_counter_set(const void* counter, double value) {
  aon_counter_set((aon_counter_t)counter, value);
}

int aon_fortran_is_present(void);
int aon_fortran_is_present(void) { return aon_is_present(); }
