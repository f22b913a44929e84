#include "gpu_counters/driver.h"

#include <dlfcn.h>
#include <string.h>

namespace aon::gpu_counters {
namespace {

constexpr const char* kDriver = "libcuda.so.1";
constexpr int kNameBytes = 128;

template <class F>
F* function(void* library, const char* name) {
  return reinterpret_cast<F*>(dlsym(library, name));
}

struct Uuid {
  unsigned char bytes[16];
};

}  // namespace

std::string uuid_text(const unsigned char (&bytes)[16], bool is_part) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text = is_part ? "MIG-" : "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

Problem find_devices(std::vector<DriverDevice>* devices) {
  void* library = dlopen(kDriver, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return {std::string(kDriver) + " is not there: no driver of NVIDIA", "install NVIDIA's driver"};
  auto* init = function<int(unsigned)>(library, "cuInit");
  auto* get_count = function<int(int*)>(library, "cuDeviceGetCount");
  auto* get = function<int(int*, int)>(library, "cuDeviceGet");
  // The second version tells the UUID of a part (MIG), the first that of the whole GPU.
  auto* get_whole_uuid = function<int(Uuid*, int)>(library, "cuDeviceGetUuid");
  auto* get_uuid = function<int(Uuid*, int)>(library, "cuDeviceGetUuid_v2");
  if (get_uuid == nullptr) get_uuid = get_whole_uuid;
  auto* get_name = function<int(char*, int, int)>(library, "cuDeviceGetName");
  if (init == nullptr || get_count == nullptr || get == nullptr || get_uuid == nullptr ||
      get_name == nullptr)
    return {std::string(kDriver) + " is too old", "a newer driver of NVIDIA"};
  if (const int code = init(0); code != 0)
    return {"cuInit: error " + std::to_string(code), "nvidia-smi says more"};
  int count = 0;
  if (const int code = get_count(&count); code != 0 || count == 0)
    return {"no GPU is visible to this job", "ask for GPUs (Slurm: --gres=gpu:N)"};
  for (int i = 0; i < count; ++i) {
    int device = 0;
    Uuid uuid = {};
    char name[kNameBytes] = {};
    if (get(&device, i) != 0 || get_uuid(&uuid, device) != 0)
      return {"GPU " + std::to_string(i) + " cannot be asked for its UUID", "nvidia-smi -L"};
    get_name(name, kNameBytes - 1, device);
    Uuid whole = uuid;
    if (get_whole_uuid != nullptr) get_whole_uuid(&whole, device);
    const bool is_part = memcmp(whole.bytes, uuid.bytes, sizeof whole.bytes) != 0;
    devices->push_back({uuid_text(uuid.bytes, is_part), name});
  }
  return {};
}

}  // namespace aon::gpu_counters
