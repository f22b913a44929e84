// The smallest NVTX: what nvtx3/nvToolsExt.h does, for test programs where there is no NVTX.
// Same names, same layouts, same way to load a tool; each library that includes it has its own.
#pragma once

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <wchar.h>

typedef struct nvtxDomainRegistration_st* nvtxDomainHandle_t;
typedef struct nvtxStringRegistration_st* nvtxStringHandle_t;
typedef struct nvtxResourceHandle* nvtxResourceHandle_t;
typedef uint64_t nvtxRangeId_t;

#define NVTX_VERSION 3
#define NVTX_MESSAGE_TYPE_ASCII 1
#define NVTX_MESSAGE_TYPE_UNICODE 2
#define NVTX_MESSAGE_TYPE_REGISTERED 3
#define NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 1
#define NVTX_PAYLOAD_TYPE_INT64 2
#define NVTX_PAYLOAD_TYPE_DOUBLE 3
#define NVTX_PAYLOAD_TYPE_UNSIGNED_INT32 4
#define NVTX_PAYLOAD_TYPE_INT32 5
#define NVTX_PAYLOAD_TYPE_FLOAT 6
#define NVTX_RESOURCE_TYPE_GENERIC_POINTER 0x10001

typedef union {
  const char* ascii;
  const wchar_t* unicode;
  nvtxStringHandle_t registered;
} nvtxMessageValue_t;

typedef struct {
  uint16_t version;
  uint16_t size;
  uint32_t category;
  int32_t colorType;
  uint32_t color;
  int32_t payloadType;
  int32_t reserved0;
  union {
    uint64_t ullValue;
    int64_t llValue;
    double dValue;
    uint32_t uiValue;
    int32_t iValue;
    float fValue;
  } payload;
  int32_t messageType;
  nvtxMessageValue_t message;
} nvtxEventAttributes_t;
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE ((uint16_t)sizeof(nvtxEventAttributes_t))

typedef struct {
  uint16_t version;
  uint16_t size;
  int32_t identifierType;
  union {
    const void* pValue;
    uint64_t ullValue;
  } identifier;
  int32_t messageType;
  nvtxMessageValue_t message;
} nvtxResourceAttributes_t;
#define NVTX_RESOURCE_ATTRIB_STRUCT_SIZE ((uint16_t)sizeof(nvtxResourceAttributes_t))

typedef void (*LoaderFunction)(void);
static LoaderFunction loader_core_functions[16];
static LoaderFunction loader_core2_functions[16];
static LoaderFunction* loader_core_table[17];
static LoaderFunction* loader_core2_table[17];
static int loader_is_done;

static int loader_get_function_table(int module, LoaderFunction*** table, unsigned* size) {
  *table = module == 1 ? loader_core_table : loader_core2_table;
  *size = 16;
  return module == 1 || module == 5;
}

static const struct {
  size_t struct_size;
  int (*get)(int, LoaderFunction***, unsigned*);
} loader_callbacks = {16, loader_get_function_table};

static void loader_set_version(uint32_t version) { (void)version; }
static const struct {
  size_t struct_size;
  uint32_t version, reserved;
  void (*set)(uint32_t);
} loader_version = {24, 3, 0, loader_set_version};

static const void* loader_get_export_table(uint32_t id) {
  if (id == 3) return &loader_version;
  return id == 1 ? (const void*)&loader_callbacks : NULL;
}

static void loader_load(void) {
  loader_is_done = 1;
  for (int i = 1; i < 16; ++i) {
    loader_core_table[i] = &loader_core_functions[i];
    loader_core2_table[i] = &loader_core2_functions[i];
  }
  const char* path = getenv("NVTX_INJECTION64_PATH");
  void* library = path != NULL ? dlopen(path, RTLD_LAZY) : NULL;
  if (library == NULL) return;
  int (*initialize)(const void* (*)(uint32_t)) = NULL;
  *(void**)&initialize = dlsym(library, "InitializeInjectionNvtx2");
  if (initialize == NULL || initialize(loader_get_export_table) != 1) {
    for (int i = 1; i < 16; ++i) loader_core_functions[i] = loader_core2_functions[i] = NULL;
  }
}

/* LOADER_CALL(result, name, table, place, otherwise, (types names), (names)) */
#define LOADER_CALL(result, name, table, place, otherwise, parameters, arguments)    \
  static inline result name parameters {                                             \
    if (!loader_is_done) loader_load();                                              \
    const LoaderFunction function = loader_##table##_functions[place];               \
    return function == NULL ? otherwise : ((result(*) parameters)function)arguments; \
  }
#define LOADER_NOTHING (void)0

LOADER_CALL(void, nvtxMarkEx, core, 1, LOADER_NOTHING, (const nvtxEventAttributes_t* e), (e))
LOADER_CALL(void, nvtxMarkA, core, 2, LOADER_NOTHING, (const char* m), (m))
LOADER_CALL(void, nvtxMarkW, core, 3, LOADER_NOTHING, (const wchar_t* m), (m))
LOADER_CALL(nvtxRangeId_t, nvtxRangeStartEx, core, 4, 0, (const nvtxEventAttributes_t* e), (e))
LOADER_CALL(nvtxRangeId_t, nvtxRangeStartA, core, 5, 0, (const char* m), (m))
LOADER_CALL(void, nvtxRangeEnd, core, 7, LOADER_NOTHING, (nvtxRangeId_t id), (id))
LOADER_CALL(int, nvtxRangePushEx, core, 8, -2, (const nvtxEventAttributes_t* e), (e))
LOADER_CALL(int, nvtxRangePushA, core, 9, -2, (const char* m), (m))
LOADER_CALL(int, nvtxRangePushW, core, 10, -2, (const wchar_t* m), (m))
LOADER_CALL(int, nvtxRangePop, core, 11, -2, (void), ())
LOADER_CALL(void, nvtxNameCategoryA, core, 12, LOADER_NOTHING, (uint32_t c, const char* n), (c, n))
LOADER_CALL(void, nvtxNameOsThreadA, core, 14, LOADER_NOTHING, (uint32_t t, const char* n), (t, n))
LOADER_CALL(void, nvtxDomainMarkEx, core2, 1, LOADER_NOTHING,
            (nvtxDomainHandle_t d, const nvtxEventAttributes_t* e), (d, e))
LOADER_CALL(nvtxRangeId_t, nvtxDomainRangeStartEx, core2, 2, 0,
            (nvtxDomainHandle_t d, const nvtxEventAttributes_t* e), (d, e))
LOADER_CALL(void, nvtxDomainRangeEnd, core2, 3, LOADER_NOTHING,
            (nvtxDomainHandle_t d, nvtxRangeId_t id), (d, id))
LOADER_CALL(int, nvtxDomainRangePushEx, core2, 4, -2,
            (nvtxDomainHandle_t d, const nvtxEventAttributes_t* e), (d, e))
LOADER_CALL(int, nvtxDomainRangePop, core2, 5, -2, (nvtxDomainHandle_t d), (d))
LOADER_CALL(nvtxResourceHandle_t, nvtxDomainResourceCreate, core2, 6, NULL,
            (nvtxDomainHandle_t d, nvtxResourceAttributes_t* r), (d, r))
LOADER_CALL(void, nvtxDomainNameCategoryA, core2, 8, LOADER_NOTHING,
            (nvtxDomainHandle_t d, uint32_t c, const char* n), (d, c, n))
LOADER_CALL(nvtxStringHandle_t, nvtxDomainRegisterStringA, core2, 10, NULL,
            (nvtxDomainHandle_t d, const char* s), (d, s))
LOADER_CALL(nvtxDomainHandle_t, nvtxDomainCreateA, core2, 12, NULL, (const char* n), (n))
LOADER_CALL(nvtxDomainHandle_t, nvtxDomainCreateW, core2, 13, NULL, (const wchar_t* n), (n))
