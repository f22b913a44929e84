#include "cupti/streams.h"

#include <aon/definition.h>
#include <aon/writer.h>
#include <stdio.h>
#include <string.h>

#include "cupti/driver.h"
#include "cupti/state.h"

namespace aon::cupti {
namespace {

constexpr const char* kRowNames[] = {"", "CUDA calls", "CUDA synchronization", "CUPTI overhead"};
constexpr char kMoreStreams[] = "more streams";
constexpr int kNameBytes = 128;
constexpr int kAddressBytes = 32;

/// What the driver calls a device; what it does not tell stays empty.
void ask_driver(uint32_t device, uint8_t (&uuid)[16], char* name, char* address) {
  int handle = 0;
  int (*get)(int*, int);
  if (!driver_function("cuDeviceGet", &get) || get(&handle, static_cast<int>(device)) != 0) return;
  int (*get_name)(char*, int, int);
  if (driver_function("cuDeviceGetName", &get_name)) get_name(name, kNameBytes, handle);
  int (*get_uuid)(uint8_t*, int);
  // The second version has the UUID of a part of a GPU (MIG), the first that of the whole.
  if (driver_function("cuDeviceGetUuid_v2", &get_uuid) ||
      driver_function("cuDeviceGetUuid", &get_uuid))
    get_uuid(uuid, handle);
  int (*get_address)(char*, int, int);
  if (driver_function("cuDeviceGetPCIBusId", &get_address))
    get_address(address, kAddressBytes, handle);
}

}  // namespace

uint32_t Streams::find(Row row, uint32_t device, uint32_t context, uint32_t stream) {
  const StreamIds::Found found = ids_.find(row, device, context, stream);
  if (found.is_new) define(*found.entry);
  if (found.entry->stream != StreamIds::kShared) last_[static_cast<uint32_t>(row)] = *found.entry;
  return found.entry->id;
}

void Streams::define(const Entry& entry) {
  const bool is_of_device = entry.row == Row::kStream;
  const bool is_shared = entry.stream == StreamIds::kShared;
  if (is_of_device) define_device(entry.device);
  const DeviceStreamDefinition stream = {entry.id, is_of_device ? entry.device : kNoDevice,
                                         entry.context, is_shared ? 0 : entry.stream};
  char name[kNameBytes];
  const char* row = kRowNames[static_cast<uint32_t>(entry.row)];
  if (is_of_device) {
    snprintf(name, sizeof name, "%s", is_shared ? kMoreStreams : "");
  } else {
    snprintf(name, sizeof name, "%s%s", row, is_shared ? " of other threads" : "");
  }
  aon_define(static_cast<uint32_t>(DefinitionType::kDeviceStream), &stream, sizeof stream, name,
             static_cast<uint32_t>(strlen(name)) + 1);
  if (!is_shared) return;
  char reason[160];
  snprintf(
      reason, sizeof reason,
      "more than %u streams or %u threads: the others share a timeline of their device or kind",
      StreamIds::kMaxStreams, StreamIds::kMaxThreads);
  tell(Remark::kStreams, ProviderState::kOn, reason, "");
}

void Streams::define_device(uint32_t device) {
  if (device >= StreamIds::kMaxDevices || (known_devices_ >> device & 1) != 0) return;
  known_devices_ |= uint64_t{1} << device;
  DeviceDefinition definition = {};
  definition.id = device;
  char name[kNameBytes] = {};
  char address[kAddressBytes] = {};
  ask_driver(device, definition.uuid, name, address);
  char text[kNameBytes + kAddressBytes + 2];
  const int bytes = snprintf(text, sizeof text, "%.*s%c%.*s", kNameBytes - 1, name, '\0',
                             kAddressBytes - 1, address);
  aon_define(static_cast<uint32_t>(DefinitionType::kDevice), &definition, sizeof definition, text,
             static_cast<uint32_t>(bytes) + 1);
}

}  // namespace aon::cupti
