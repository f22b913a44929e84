// A program whose ranges have payloads: by NVIDIA's header (REAL_NVTX), or the tests' smallest one.
// One case per run: `nvtx_payload CASE`. Knows nothing of AON.
#ifdef REAL_NVTX
#include <nvtx3/nvToolsExtPayload.h>
#else
#include "tests/e2e/annotate/programs/nvtx_payload_loader.h"
#endif
#if defined(REAL_NVTX) && __has_include(<nvtx3/nvToolsExtCounters.h>) && \
    __has_include(<nvtx3/nvToolsExtMem.h>)
#include <nvtx3/nvToolsExtCounters.h>
#include <nvtx3/nvToolsExtMem.h>
#define HAS_OTHER_EXTENSIONS
#endif
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static nvtxDomainHandle_t domain;

static nvtxEventAttributes_t event(const char* message) {
  nvtxEventAttributes_t e;
  memset(&e, 0, sizeof e);
  e.version = NVTX_VERSION;
  e.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  if (message == NULL) return e;
  e.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  e.message.registered = nvtxDomainRegisterStringA(domain, message);
  return e;
}

static nvtxEventAttributes_t event_with(const char* message, nvtxPayloadData_t* payloads,
                                        int count) {
  nvtxEventAttributes_t e = event(message);
  e.payloadType = NVTX_PAYLOAD_TYPE_EXT;
  e.reserved0 = count;
  e.payload.ullValue = (uint64_t)(uintptr_t)payloads;
  return e;
}

static uint64_t register_schema(const char* name, const nvtxPayloadSchemaEntry_t* entries,
                                size_t count, uint64_t id) {
  nvtxPayloadSchemaAttr_t a;
  memset(&a, 0, sizeof a);
  a.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES;
  if (name != NULL) a.fieldMask |= NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME;
  if (id != 0) a.fieldMask |= NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
  a.name = name;
  a.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  a.entries = entries;
  a.numEntries = count;
  a.schemaId = id;
  return nvtxPayloadSchemaRegister(domain, &a);
}

struct Call {
  uint64_t communicator;
  int ranks, rank;
};
static const nvtxPayloadSchemaEntry_t kCall[] = {
    {.type = NVTX_PAYLOAD_ENTRY_TYPE_UINT64, .name = "communicator"},
    {.type = NVTX_PAYLOAD_ENTRY_TYPE_INT, .offset = offsetof(struct Call, ranks)},
    {.type = NVTX_PAYLOAD_ENTRY_TYPE_INT, .offset = offsetof(struct Call, rank)}};

/// As NCCL does: what is known only at the end comes with the pop.
static void nested(void) {
  const uint64_t schema =
      register_schema("call", kCall, 3, NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 1);
  printf("static %d\n", schema == NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 1);
  struct Call call = {0x1234, 8, 3};
  nvtxPayloadData_t data[] = {{schema, sizeof call, &call}};
  printf("levels");
  for (int i = 0; i < 2; ++i) {
    nvtxEventAttributes_t e = event("ncclCommInitRank");
    printf(" %d", nvtxDomainRangePushEx(domain, &e));
    e = event_with("ncclAllReduce", data, 1);
    printf(" %d", nvtxDomainRangePushEx(domain, &e));
    printf(" %d", nvtxDomainRangePop(domain));
    e = event("ncclGroupEnd");
    printf(" %d", nvtxDomainRangePushEx(domain, &e));
    printf(" %d", nvtxRangePopPayload(domain, NULL, 0));
    printf(" %d", nvtxRangePopPayload(domain, data, 1));
  }
  printf(" %d\n", nvtxRangePopPayload(domain, data, 1) < 0);
}

struct Named {
  nvtxStringHandle_t handle;
  const char* text;
  char embedded[8];
  uint32_t category;
};

static void pushed(uint64_t schema, const void* payload, size_t bytes) {
  const nvtxPayloadData_t data = {schema, bytes, payload};
  printf(" %d", nvtxRangePushPayload(domain, &data, 1));
  printf(" %d", nvtxRangePopPayload(domain, NULL, 0));
}

static void messages(void) {
  const uint64_t is_message = NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE;
  const uint64_t handle_type = NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE;
  const nvtxPayloadSchemaEntry_t by_handle[] = {
      {.flags = is_message, .type = handle_type},
      {.type = NVTX_PAYLOAD_ENTRY_TYPE_CATEGORY, .offset = offsetof(struct Named, category)}};
  const nvtxPayloadSchemaEntry_t by_text[] = {
      // offsets are worked out
      {.type = handle_type},
      {.flags = is_message, .type = NVTX_PAYLOAD_ENTRY_TYPE_CSTRING}};
  const nvtxPayloadSchemaEntry_t embedded[] = {
      {.flags = is_message | NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE,
       .type = NVTX_PAYLOAD_ENTRY_TYPE_CHAR,
       .arrayOrUnionDetail = 8,
       .offset = offsetof(struct Named, embedded)}};
  nvtxDomainNameCategoryA(domain, 7, "kernels");
  struct Named named = {nvtxDomainRegisterStringA(domain, "handle"), "text", "embedded", 7};
  memcpy(named.embedded, "embedded", 8);  // without a NUL
  printf("levels");
  pushed(register_schema(NULL, by_handle, 2, 0), &named, sizeof named);
  pushed(register_schema(NULL, by_text, 2, 0), &named, sizeof named);
  pushed(register_schema(NULL, embedded, 1, 0), &named, sizeof named);
  pushed(register_schema("schema's name", kCall, 3, 0), &named, sizeof named);
  printf("\n");
  nvtxPayloadData_t data[] = {{register_schema(NULL, by_text, 2, 0), sizeof named, &named}};
  nvtxEventAttributes_t e = event_with("before the payload's", data, 1);
  nvtxDomainMarkEx(domain, &e);
}

static void mark(uint64_t schema, const void* payload, size_t bytes) {
  const nvtxPayloadData_t data = {schema, bytes, payload};
  nvtxMarkPayload(domain, &data, 1);
}

/// One number is a value; of several nobody says which.
static void values(void) {
  const double real = 0.25;
  const uint64_t whole = 1ull << 63;
  const float single = 0.5f;
  const struct {
    int16_t a;
    float b[2];
  } mixed = {-7, {1, 2}};
  const nvtxPayloadSchemaEntry_t entries[] = {{.type = NVTX_PAYLOAD_ENTRY_TYPE_INT16},
                                              {.flags = NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE,
                                               .type = NVTX_PAYLOAD_ENTRY_TYPE_FLOAT,
                                               .arrayOrUnionDetail = 2}};
  const struct Call call = {1, 2, 3};
  mark(NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE, &real, sizeof real);
  mark(NVTX_PAYLOAD_ENTRY_TYPE_UINT64, &whole, SIZE_MAX);
  mark(NVTX_PAYLOAD_ENTRY_TYPE_FLOAT, &single, sizeof single);
  mark(register_schema("mixed", entries, 2, 0), &mixed, sizeof mixed);
  nvtxPayloadEnumAttr_t kinds;
  memset(&kinds, 0, sizeof kinds);
  kinds.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE;
  kinds.sizeOfEnum = 4;
  const nvtxPayloadSchemaEntry_t of_kind[] = {{.type = NVTX_PAYLOAD_ENTRY_TYPE_CHAR},
                                              {.type = nvtxPayloadEnumRegister(domain, &kinds)}};
  const uint32_t kind[] = {0xffffffffu, 5};
  mark(register_schema("kind", of_kind, 2, 0), kind, sizeof kind);
  mark(register_schema("call", kCall, 3, 0), &call, sizeof call);
}

static void* end_there(void* id) {
  const int number = 5;
  const nvtxPayloadData_t data = {NVTX_PAYLOAD_ENTRY_TYPE_INT, sizeof number, &number};
  nvtxRangeEndPayload(domain, *(nvtxRangeId_t*)id, &data, 1);
  return NULL;
}

static void started(void) {
  const int number = -4;
  const nvtxPayloadData_t data = {NVTX_PAYLOAD_ENTRY_TYPE_INT, sizeof number, &number};
  nvtxEventAttributes_t e = event("first");
  const nvtxRangeId_t first = nvtxDomainRangeStartEx(domain, &e);
  nvtxRangeId_t second = nvtxRangeStartPayload(domain, &data, 1);
  nvtxRangeEndPayload(domain, first, NULL, 0);
  pthread_t thread;
  pthread_create(&thread, NULL, end_there, &second);
  pthread_join(thread, NULL);
  nvtxRangeEndPayload(domain, 0, NULL, 0);
}

static void odd(void) {
  const nvtxPayloadSchemaEntry_t text[] = {
      {.flags = NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE, .type = NVTX_PAYLOAD_ENTRY_TYPE_CSTRING}};
  const uint64_t of_text =
      register_schema("of text", text, 1, NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 2);
  const char* null = NULL;
  const uint64_t words[] = {1, 2};
  printf("%d %d %d\n", nvtxDomainIsEnabled(domain), nvtxPayloadSchemaRegister(domain, NULL) == 0,
         nvtxScopeRegister(domain, NULL) == 0);
  printf("levels %d", nvtxRangePushPayload(domain, NULL, 3));
  printf(" %d", nvtxRangePopPayload(domain, NULL, 3));
  pushed(of_text, &null, sizeof null);       // a null message
  pushed(of_text, NULL, sizeof null);        // no payload
  pushed(of_text, words, 4);                 // shorter than its schema
  pushed(0xdeadbeefdeadbeefull, words, 16);  // of no schema
  register_schema("another", kCall, 3, NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 2);
  pushed(of_text, words, sizeof words);  // one id, two schemas: which is not known
  nvtxEventAttributes_t e = event_with("none of three", NULL, 3);
  printf(" %d", nvtxDomainRangePushEx(domain, &e));
  printf(" %d\n", nvtxRangePopPayload(domain, NULL, 0));
}

/// More schemas than there is room for.
static void many(void) {
  uint64_t last = 0;
  for (int i = 0; i < 1100; ++i) last = register_schema("many", kCall, 3, 0);
  const uint64_t words[] = {1, 2, 3};
  pushed(last, words, sizeof words);
}

/// Extensions that AON takes nothing of.
static void others(void) {
#ifdef HAS_OTHER_EXTENSIONS
  nvtxCounterAttr_t counter;
  memset(&counter, 0, sizeof counter);
  counter.structSize = sizeof counter;
  const uint64_t id = nvtxCounterRegister(domain, &counter);
  nvtxCounterSampleInt64(domain, id, 3);
  nvtxMemHeapDesc_t heap;
  memset(&heap, 0, sizeof heap);
  const nvtxMemHeapHandle_t handle = nvtxMemHeapRegister(domain, &heap);
  nvtxMemHeapUnregister(domain, handle);
  printf("%d %d\n", (int)id, handle == 0);
#endif
  nvtxRangePushA("after");
  nvtxRangePop();
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } kCases[] = {{"nested", nested},   {"messages", messages}, {"values", values},
                {"started", started}, {"odd", odd},           {"others", others},
                {"many", many}};
  domain = nvtxDomainCreateA("NCCL");
  for (size_t i = 0; argc > 1 && i < sizeof kCases / sizeof kCases[0]; ++i) {
    if (strcmp(argv[1], kCases[i].name) != 0) continue;
    kCases[i].run();
    return 0;
  }
  return 2;
}
