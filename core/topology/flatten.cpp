#include "core/topology/flatten.h"

#include <hwloc.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace aon::topology {
namespace {

constexpr uint16_t kVendorNvidia = 0x10de;
constexpr uint16_t kVendorAmd = 0x1002;
constexpr uint16_t kVendorIntel = 0x8086;

// PCI class codes (PCI Code and ID Assignment Specification), the upper 16 bits.
constexpr uint16_t kClassVga = 0x0300;
constexpr uint16_t kClass3d = 0x0302;
constexpr uint16_t kClassDisplayOther = 0x0380;  // AMD MI200, Intel GPU Max
constexpr uint16_t kClassAccelerator = 0x1200;   // AMD MI300
constexpr uint16_t kBaseClassNetwork = 0x02;

std::string list_of(hwloc_const_bitmap_t set) {
  char* text = nullptr;
  if (set == nullptr || hwloc_bitmap_list_asprintf(&text, set) < 0) return "";
  std::string list(text);
  free(text);
  return list;
}

std::string info_of(hwloc_obj_t object, const char* key) {
  const char* value = hwloc_obj_get_info_by_name(object, key);
  return value == nullptr ? "" : value;
}

/// What a PCI device is to us; nothing when neither GPU nor NIC.
std::optional<ObjectType> device_type(const hwloc_obj_attr_u::hwloc_pcidev_attr_s& pci) {
  if (pci.class_id >> 8 == kBaseClassNetwork) return ObjectType::kNic;
  const bool accelerator_vendor = pci.vendor_id == kVendorNvidia || pci.vendor_id == kVendorAmd;
  if (pci.class_id == kClassAccelerator && accelerator_vendor) return ObjectType::kGpu;
  const bool is_display =
      pci.class_id == kClassVga || pci.class_id == kClass3d || pci.class_id == kClassDisplayOther;
  if (is_display && (accelerator_vendor || pci.vendor_id == kVendorIntel)) return ObjectType::kGpu;
  return std::nullopt;
}

/// What an OS device is to us, from hwloc's type and the names its parts give.
std::optional<ObjectType> device_type(hwloc_obj_t os_device) {
  const char* name = os_device->name == nullptr ? "" : os_device->name;
  switch (os_device->attr->osdev.type) {
    case HWLOC_OBJ_OSDEV_NETWORK:
    case HWLOC_OBJ_OSDEV_OPENFABRICS:
      return ObjectType::kNic;
    default:
      break;
  }
  for (const char* prefix : {"nvml", "cuda", "rsmi", "ze"}) {
    const size_t length = strlen(prefix);
    if (strncmp(name, prefix, length) == 0 && name[length] >= '0' && name[length] <= '9') {
      return ObjectType::kGpu;
    }
  }
  return std::nullopt;
}

/// The better of several names of one device: management library, then runtime, then the rest.
int name_preference(const std::string& name) {
  constexpr const char* kOrder[] = {"nvml", "rsmi", "cuda", "ze", "mlx", "hfi", "ib"};
  int preference = static_cast<int>(std::size(kOrder));
  for (const char* prefix : kOrder) {
    if (name.rfind(prefix, 0) == 0) return preference;
    --preference;
  }
  return 0;
}

class Flattener {
 public:
  explicit Flattener(hwloc_topology* topology) : topology_(topology) {}

  std::vector<Object> run() {
    for (int depth = 0; depth < hwloc_topology_get_depth(topology_); ++depth) add_level(depth);
    add_level(HWLOC_TYPE_DEPTH_NUMANODE);
    add_devices();
    return std::move(objects_);
  }

 private:
  void add_level(int depth) {
    for (unsigned i = 0; i < hwloc_get_nbobjs_by_depth(topology_, depth); ++i) {
      add_normal(hwloc_get_obj_by_depth(topology_, depth, i));
    }
  }

  void add_normal(hwloc_obj_t hw) {
    Object object{};
    switch (hw->type) {
      case HWLOC_OBJ_MACHINE:
        object.type = ObjectType::kMachine;
        object.model = info_of(hw, "DMIProductName");
        break;
      case HWLOC_OBJ_PACKAGE:
        object.type = ObjectType::kPackage;
        object.model = info_of(hw, "CPUModel");
        break;
      case HWLOC_OBJ_NUMANODE:
        object.type = ObjectType::kNumaNode;
        object.size_bytes = hw->attr->numanode.local_memory;
        break;
      case HWLOC_OBJ_CORE:
        object.type = ObjectType::kCore;
        break;
      case HWLOC_OBJ_PU:
        object.type = ObjectType::kPu;
        break;
      default:
        if (!hwloc_obj_type_is_dcache(hw->type)) return;
        object.type = ObjectType::kCache;
        object.cache_level = hw->attr->cache.depth;
        object.size_bytes = hw->attr->cache.size;
    }
    if (hw->os_index != HWLOC_UNKNOWN_INDEX) object.os_index = hw->os_index;
    object.name = normal_name(object, hw);
    object.cpus = list_of(hw->cpuset);
    object.numa_nodes = list_of(hw->nodeset);
    add(std::move(object), hw, hw->parent);
  }

  static std::string normal_name(const Object& object, hwloc_obj_t hw) {
    const std::string number = std::to_string(hw->logical_index);
    switch (object.type) {
      case ObjectType::kMachine:
        return "Machine";
      case ObjectType::kPackage:
        return "Package " + number;
      case ObjectType::kNumaNode:
        return "NUMA node " + number;
      case ObjectType::kCache:
        return "L" + std::to_string(object.cache_level) + " cache " + number;
      case ObjectType::kCore:
        return "Core " + number;
      default:
        return "PU " + number;
    }
  }

  /// One row per PCI device that is a GPU or NIC, named after the best of its OS devices; and one
  /// per OS device that hangs on no such PCI device.
  void add_devices() {
    for (hwloc_obj_t pci = nullptr; (pci = hwloc_get_next_pcidev(topology_, pci)) != nullptr;) {
      const std::optional<ObjectType> type = device_type(pci->attr->pcidev);
      if (type) add_pci(pci, *type);
    }
    for (hwloc_obj_t os = nullptr; (os = hwloc_get_next_osdev(topology_, os)) != nullptr;) {
      const std::optional<ObjectType> type = device_type(os);
      if (type) add_os(os, *type);
    }
  }

  void add_pci(hwloc_obj_t pci, ObjectType type) {
    const hwloc_obj_attr_u::hwloc_pcidev_attr_s& attr = pci->attr->pcidev;
    char address[32];
    snprintf(address, sizeof(address), "%04x:%02x:%02x.%x", attr.domain, attr.bus, attr.dev,
             attr.func);
    Object device = make_device(pci, type);
    device.pci_address = address;
    device.name = (type == ObjectType::kGpu ? "GPU " : "NIC ") + device.pci_address;
    device.model = info_of(pci, "PCIDevice");
    add(std::move(device), pci, hwloc_get_non_io_ancestor_obj(topology_, pci));
  }

  void add_os(hwloc_obj_t os, ObjectType type) {
    const std::string name = os->name == nullptr ? "" : os->name;
    const auto row = rows_.find(os->parent->gp_index);
    const bool on_device = row != rows_.end() && objects_[row->second].type == type;
    if (!on_device) {
      Object device = make_device(os, type);
      device.name = name;
      device.model = info_of(os, "GPUModel");
      add(std::move(device), os, hwloc_get_non_io_ancestor_obj(topology_, os));
      return;
    }
    Object& device = objects_[row->second];
    const bool unnamed = device.name.find(device.pci_address) != std::string::npos;
    if (unnamed || name_preference(name) > name_preference(device.name)) device.name = name;
    if (const std::string model = info_of(os, "GPUModel"); !model.empty()) device.model = model;
  }

  Object make_device(hwloc_obj_t hw, ObjectType type) {
    Object device{};
    device.type = type;
    const hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(topology_, hw);
    device.cpus = list_of(near->cpuset);
    device.numa_nodes = list_of(near->nodeset);
    return device;
  }

  void add(Object object, hwloc_obj_t hw, hwloc_obj_t parent) {
    for (; parent != nullptr; parent = parent->parent) {
      const auto row = rows_.find(parent->gp_index);
      if (row == rows_.end()) continue;
      object.parent = row->second;
      break;
    }
    object.logical_index = counts_[{object.type, object.cache_level}]++;
    rows_[hw->gp_index] = static_cast<uint32_t>(objects_.size());
    objects_.push_back(std::move(object));
  }

  hwloc_topology* topology_;
  std::vector<Object> objects_;
  std::map<uint64_t, uint32_t> rows_;  ///< hwloc's unique index -> row
  std::map<std::pair<ObjectType, uint32_t>, uint32_t> counts_;
};

}  // namespace

std::vector<Object> flatten(hwloc_topology* topology) { return Flattener(topology).run(); }

}  // namespace aon::topology
