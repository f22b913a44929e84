// Functions whose names the symbol tests know: global, static, aliases, a label without size.
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) int plain(int value) { return value * 3 + 1; }

static __attribute__((noinline)) int hidden_work(int value) { return plain(value) ^ 5; }

__attribute__((noinline)) int first_name(int value) { return hidden_work(value) + 7; }
int weak_name(int value) __attribute__((weak, alias("first_name")));

__asm__(
    ".text\n"
    ".globl label_without_size\n"
    "label_without_size:\n"
    "  nop\n"
    "  nop\n"
    "  ret\n");
void label_without_size(void);

int main(int argc, char** argv) {
  label_without_size();
  int sum = 0;
  for (int i = 0; i < argc * 3; ++i) sum += first_name(i);
#ifdef AON_TAKES_ADDRESS  // of what it calls: the entry of the PLT is in .plt.got then
  static void (*volatile sort)(void*, size_t, size_t, int (*)(const void*, const void*));
  sort = qsort;
#endif
  if (argc > 100) qsort(argv, 2, sizeof(*argv), NULL);
  printf("%d\n", sum);
  return 0;
}
