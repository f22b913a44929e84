// The smallest payload extension of NVTX: what nvtx3/nvToolsExtPayload.h does, for test programs
// where there is none. Same names, same layouts, same way to load a tool.
#pragma once

#include "tests/e2e/annotate/programs/nvtx_loader.h"

#define NVTX_PAYLOAD_TYPE_EXT ((int32_t)0xDFBD0009)
#define NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE (1 << 4)
#define NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE (1 << 10)
#define NVTX_PAYLOAD_ENTRY_TYPE_CHAR 1
#define NVTX_PAYLOAD_ENTRY_TYPE_INT 5
#define NVTX_PAYLOAD_ENTRY_TYPE_INT16 13
#define NVTX_PAYLOAD_ENTRY_TYPE_UINT64 18
#define NVTX_PAYLOAD_ENTRY_TYPE_FLOAT 19
#define NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE 20
#define NVTX_PAYLOAD_ENTRY_TYPE_CATEGORY 68
#define NVTX_PAYLOAD_ENTRY_TYPE_CSTRING 75
#define NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE 80
#define NVTX_PAYLOAD_SCHEMA_ID_STATIC_START (1 << 24)
#define NVTX_PAYLOAD_SCHEMA_TYPE_STATIC 1
#define NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME (1 << 1)
#define NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE (1 << 2)
#define NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES (1 << 4)
#define NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES (1 << 5)
#define NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID (1 << 8)
#define NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE (1 << 4)

typedef struct {
  uint64_t schemaId;
  size_t size;
  const void* payload;
} nvtxPayloadData_t;

typedef struct {
  uint64_t flags;
  uint64_t type;
  const char* name;
  const char* description;
  uint64_t arrayOrUnionDetail;
  uint64_t offset;
  const void* semantics;
  const void* reserved;
} nvtxPayloadSchemaEntry_t;

typedef struct {
  uint64_t fieldMask;
  const char* name;
  uint64_t type;
  uint64_t flags;
  const nvtxPayloadSchemaEntry_t* entries;
  size_t numEntries;
  size_t payloadStaticSize;
  size_t packAlign;
  uint64_t schemaId;
  void* extension;
} nvtxPayloadSchemaAttr_t;

typedef struct {
  uint64_t fieldMask;
  const char* name;
  const void* entries;
  size_t numEntries;
  size_t sizeOfEnum;
  uint64_t schemaId;
  void* extension;
} nvtxPayloadEnumAttr_t;

static intptr_t payload_slots[63];
static int payload_is_done;

static void payload_load(void) {
  struct {
    size_t id, slot_count;
    intptr_t* slots;
  } segment = {0, 63, payload_slots};
  struct {
    uint16_t nvtx_version, struct_bytes, module, version;
    size_t segment_count;
    void* segments;
    intptr_t (*get_export)(uint32_t);
    const void* types;
  } module = {3, sizeof module, 2, 0x0104, 1, &segment, NULL, NULL};
  payload_is_done = 1;
  if (!loader_is_done) loader_load();
  const char* path = getenv("NVTX_INJECTION64_PATH");
  void* library = path != NULL ? dlopen(path, RTLD_LAZY) : NULL;
  if (library == NULL) return;
  int (*initialize)(void*) = NULL;
  *(void**)&initialize = dlsym(library, "InitializeInjectionNvtxExtension");
  if (initialize == NULL) {
    dlclose(library);
  } else if (initialize(&module) == 0) {
    for (int i = 0; i < 63; ++i) payload_slots[i] = 0;
  }
}

/* PAYLOAD_CALL(result, name, place, otherwise, (types names), (names)) */
#define PAYLOAD_CALL(result, name, place, otherwise, parameters, arguments)       \
  static inline result name parameters {                                          \
    if (!payload_is_done) payload_load();                                         \
    const intptr_t function = payload_slots[place];                               \
    return function == 0 ? otherwise : ((result(*) parameters)function)arguments; \
  }
#define PAYLOAD_OF (nvtxDomainHandle_t d, const nvtxPayloadData_t* p, size_t count)

PAYLOAD_CALL(uint64_t, nvtxPayloadSchemaRegister, 0, 0,
             (nvtxDomainHandle_t d, const nvtxPayloadSchemaAttr_t* a), (d, a))
PAYLOAD_CALL(uint64_t, nvtxPayloadEnumRegister, 1, 0,
             (nvtxDomainHandle_t d, const nvtxPayloadEnumAttr_t* a), (d, a))
PAYLOAD_CALL(void, nvtxMarkPayload, 2, LOADER_NOTHING, PAYLOAD_OF, (d, p, count))
PAYLOAD_CALL(int, nvtxRangePushPayload, 3, -2, PAYLOAD_OF, (d, p, count))
PAYLOAD_CALL(int, nvtxRangePopPayload, 4, -2, PAYLOAD_OF, (d, p, count))
PAYLOAD_CALL(nvtxRangeId_t, nvtxRangeStartPayload, 5, 0, PAYLOAD_OF, (d, p, count))
PAYLOAD_CALL(void, nvtxRangeEndPayload, 6, LOADER_NOTHING,
             (nvtxDomainHandle_t d, nvtxRangeId_t id, const nvtxPayloadData_t* p, size_t count),
             (d, id, p, count))
PAYLOAD_CALL(uint8_t, nvtxDomainIsEnabled, 7, 1, (nvtxDomainHandle_t d), (d))
PAYLOAD_CALL(uint64_t, nvtxScopeRegister, 12, 0, (nvtxDomainHandle_t d, const void* a), (d, a))
