/// The few functions of a driver that name its GPUs. FAKE_PM_GPUS: how many; 1. FAKE_PM_MIG=1: they
/// are parts of one.
#include <cstdlib>
#include <cstring>

#define FAKE extern "C" __attribute__((visibility("default"))) int

FAKE cuInit(unsigned) { return 0; }
FAKE cuDeviceGetCount(int* count) {
  const char* text = getenv("FAKE_PM_GPUS");
  *count = text != nullptr ? atoi(text) : 1;
  return 0;
}
FAKE cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
FAKE cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  memset(uuid, 0x11, 16);
  uuid[3] = static_cast<unsigned char>(device);
  return 0;
}
FAKE cuDeviceGetUuid(unsigned char* uuid, int device) {
  const int code = cuDeviceGetUuid_v2(uuid, device);
  if (getenv("FAKE_PM_MIG") != nullptr) memset(uuid, 0x22, 16);
  return code;
}
FAKE cuDeviceGetName(char* name, int, int) {
  strcpy(name, "Fake H100");
  return 0;
}
