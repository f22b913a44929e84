// A program that does without MPI where it finds none, and else asks first. Exits with 0 when
// nobody said that MPI runs, or had run.
int MPI_Initialized(int* flag) __attribute__((weak));
int MPI_Finalized(int* flag) __attribute__((weak));

int main(void) {
  int is_initialized = MPI_Initialized == 0 ? 0 : 7;
  int is_finalized = MPI_Finalized == 0 ? 0 : 7;
  if (MPI_Initialized != 0 && MPI_Initialized(&is_initialized) != 0) return 1;
  if (MPI_Finalized != 0 && MPI_Finalized(&is_finalized) != 0) return 2;
  return is_initialized == 0 && is_finalized == 0 ? 0 : 3;
}
