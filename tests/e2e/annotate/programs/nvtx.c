// A program that uses NVTX: the real one (REAL_NVTX), or the tests' smallest one. One case per run:
// `nvtx CASE`. Knows nothing of AON.
#ifdef REAL_NVTX
#include <nvtx3/nvToolsExt.h>
#else
#include "tests/e2e/annotate/programs/nvtx_loader.h"
#endif
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

void nvtx_library(void);

static nvtxEventAttributes_t event(const char* message) {
  nvtxEventAttributes_t e;
  memset(&e, 0, sizeof e);
  e.version = NVTX_VERSION;
  e.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  e.messageType = NVTX_MESSAGE_TYPE_ASCII;
  e.message.ascii = message;
  return e;
}

static void ranges(void) {
  char name[16];
  printf("levels %d", nvtxRangePushA("outer"));
  for (int i = 0; i < 2; ++i) {
    snprintf(name, sizeof name, "inner %d", i);  // the same address, another text
    printf(" %d", nvtxRangePushA(name));
    printf(" %d", nvtxRangePop());
  }
  printf(" %d", nvtxRangePushW(L"wide \u00e9\u4e2d"));
  printf(" %d", nvtxRangePop());
  printf(" %d", nvtxRangePop());
  printf(" %d\n", nvtxRangePop() < 0);
  nvtxMarkA("mark");
  nvtxMarkW(L"wide mark");
}

static void domains(void) {
  nvtxDomainHandle_t first = nvtxDomainCreateA("NCCL");
  nvtxDomainHandle_t second = nvtxDomainCreateW(L"torch");
  nvtxDomainNameCategoryA(first, 7, "kernels");
  nvtxEventAttributes_t e = event("AllReduce");
  nvtxDomainRangePushEx(first, &e);
  e.category = 7;
  nvtxDomainRangePushEx(first, &e);
  e.category = 8;
  nvtxDomainRangePushEx(second, &e);
  nvtxDomainRangePop(second);
  nvtxDomainRangePop(first);
  nvtxDomainRangePop(first);
  printf("same %d\n", nvtxDomainCreateA("NCCL") == first);
  nvtxEventAttributes_t registered = event(NULL);
  registered.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  registered.message.registered = nvtxDomainRegisterStringA(second, "forward");
  nvtxDomainRangePushEx(second, &registered);
  registered.category = 9;
  nvtxDomainRangePushEx(second, &registered);
  nvtxDomainRangePop(second);
  nvtxDomainRangePop(second);
}

static void payloads(void) {
  nvtxEventAttributes_t e = event("value");
  e.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  e.payload.ullValue = 1ull << 63;
  nvtxMarkEx(&e);
  e.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  e.payload.llValue = -2;
  nvtxMarkEx(&e);
  e.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
  e.payload.dValue = 0.5;
  nvtxMarkEx(&e);
  e.payload.ullValue = ~0ull;
  e.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT32;
  e.payload.uiValue = 3;
  nvtxMarkEx(&e);
  e.payloadType = NVTX_PAYLOAD_TYPE_INT32;
  e.payload.iValue = -3;
  nvtxMarkEx(&e);
  e.payloadType = NVTX_PAYLOAD_TYPE_FLOAT;
  e.payload.fValue = 0.25f;
  nvtxRangePushEx(&e);
  nvtxRangePop();
}

static void* end_there(void* id) {
  nvtxRangeEnd(*(nvtxRangeId_t*)id);
  return NULL;
}

static void overlapping(void) {
  nvtxEventAttributes_t e = event("second");
  e.payloadType = NVTX_PAYLOAD_TYPE_INT32;
  e.payload.iValue = 4;
  const nvtxRangeId_t first = nvtxRangeStartA("first");
  nvtxRangeId_t second = nvtxRangeStartEx(&e);
  nvtxRangeEnd(first);
  pthread_t thread;
  pthread_create(&thread, NULL, end_there, &second);
  pthread_join(thread, NULL);
  nvtxRangeEnd(0);
  nvtxRangeEnd(~0ull);
}

static void names(void) {
  nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "solver");
  nvtxResourceAttributes_t resource;
  memset(&resource, 0, sizeof resource);
  resource.version = NVTX_VERSION;
  resource.size = NVTX_RESOURCE_ATTRIB_STRUCT_SIZE;
  resource.identifierType = NVTX_RESOURCE_TYPE_GENERIC_POINTER;
  resource.identifier.ullValue = 0x1234;
  resource.messageType = NVTX_MESSAGE_TYPE_ASCII;
  resource.message.ascii = "mutex";
  nvtxDomainResourceCreate(nvtxDomainCreateA("app"), &resource);
  nvtxRangePushA("work");
  nvtxRangePop();
}

static void libraries(void) {
  nvtxRangePushA("program");
  nvtx_library();
  nvtxRangePop();
}

static void forked(void) {
  nvtxRangePushA("parent");
  const pid_t pid = fork();
  if (pid == 0) {
    printf("level %d\n", nvtxRangePushA("parent"));
    nvtxRangePop();
    fflush(stdout);
    _exit(0);
  }
  waitpid(pid, NULL, 0);
  nvtxRangePop();
}

static void interleaved(void) {
  nvtxDomainHandle_t a = nvtxDomainCreateA("a");
  nvtxDomainHandle_t b = nvtxDomainCreateA("b");
  nvtxEventAttributes_t e = event("x");
  nvtxDomainRangePushEx(a, &e);
  nvtxDomainRangePushEx(b, &e);
  nvtxDomainRangePop(a);
  nvtxDomainRangePop(b);
}

static void deep(void) {
  for (int i = 0; i < 100; ++i) nvtxRangePushA("level");
  for (int i = 0; i < 100; ++i) nvtxRangePop();
  nvtxRangePushA("after");
  nvtxRangePop();
}

static void odd(void) {
  nvtxRangePushA(NULL);
  nvtxRangePop();
  nvtxEventAttributes_t e;
  memset(&e, 0, sizeof e);
  nvtxMarkEx(&e);
  nvtxRangePop();
  char* name = malloc((1 << 20) + 1);
  memset(name, 'x', 1 << 20);
  name[1 << 20] = '\0';
  nvtxMarkA(name);
  nvtxDomainHandle_t domain = nvtxDomainCreateA(name);
  e = event(name);
  nvtxDomainMarkEx(domain, &e);
  free(name);
}

static void stray(void) {
  nvtxRangePushA("pushed");
  nvtxRangePop();
  nvtxRangePop();
  nvtxRangeEnd(1);
  nvtxRangeEnd(2);
  const nvtxRangeId_t range = nvtxRangeStartA("started");
  nvtxRangeEnd(range);
  nvtxRangeEnd(range);
  nvtxRangeEnd(range);
}

/// More at a time than there are places for, slowly: a busy machine's agent is to keep up.
static void many(void) {
  enum { kCount = 10000, kAtOnce = 20, kPauseUs = 1000 };
  nvtxRangeId_t* ranges = malloc(kCount * sizeof *ranges);
  for (int i = 0; i < kCount; ++i) {
    ranges[i] = nvtxRangeStartA("one of many");
    if (i % kAtOnce == 0) usleep(kPauseUs);
  }
  for (int i = 0; i < kCount; ++i) {
    nvtxRangeEnd(ranges[i]);
    if (i % kAtOnce == 0) usleep(kPauseUs);
  }
  nvtxRangeEnd(ranges[0]);
  free(ranges);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } kCases[] = {{"ranges", ranges},     {"domains", domains},
                {"payloads", payloads}, {"overlapping", overlapping},
                {"names", names},       {"libraries", libraries},
                {"fork", forked},       {"interleaved", interleaved},
                {"deep", deep},         {"odd", odd},
                {"stray", stray},       {"many", many}};
  for (size_t i = 0; argc > 1 && i < sizeof kCases / sizeof kCases[0]; ++i) {
    if (strcmp(argv[1], kCases[i].name) != 0) continue;
    kCases[i].run();
    return 0;
  }
  return 2;
}
