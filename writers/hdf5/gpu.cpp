#include "writers/hdf5/gpu.h"

#include <hdf5_hl.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

#include "core/spool/home_node.h"
#include "core/topology/topology.h"
#include "writers/devices/device_names.h"
#include "writers/hdf5/column.h"
#include "writers/hdf5/gpu_use.h"
#include "writers/hdf5/tables.h"

namespace aon::writers::hdf5 {
namespace {

using profile::DeviceRow;

/// The columns that say whose work it is.
struct OwnerColumns {
  explicit OwnerColumns(Table* table)
      : rank(table->add<int64_t>("rank", {"1", "rank in MPI_COMM_WORLD, -1 without"})),
        process(table->add<uint32_t>("process", {"1", "row of /ranks"})),
        device(table->add<uint32_t>("device", {"1", "ordinal of the device in its process"})) {}

  void append(const Group& group, uint32_t ordinal) {
    rank.append(group.rank ? int64_t{*group.rank} : -1);
    process.append(group.id);
    device.append(ordinal);
  }

  Column<int64_t>& rank;
  Column<uint32_t>& process;
  Column<uint32_t>& device;
};

/// How often, and how long.
struct TimeColumns {
  explicit TimeColumns(Table* table)
      : count(table->add<uint64_t>("count", {"1", "how often"})),
        total(table->add<uint64_t>("total_ns", {"ns", "time of all of them"})),
        mean(table->add<double>("mean_ns", {"ns", "time of one, on average"})),
        shortest(table->add<uint64_t>("min_ns", {"ns", "time of the shortest"})),
        longest(table->add<uint64_t>("max_ns", {"ns", "time of the longest"})) {}

  void append(const DeviceRow& row) {
    count.append(row.count);
    total.append(row.total_ns);
    mean.append(static_cast<double>(row.total_ns) /
                static_cast<double>(std::max<uint64_t>(row.count, 1)));
    shortest.append(row.min_ns);
    longest.append(row.max_ns);
  }

  Column<uint64_t>& count;
  Column<uint64_t>& total;
  Column<double>& mean;
  Column<uint64_t>& shortest;
  Column<uint64_t>& longest;
};

/// GPUs of a node by their address on the bus, as its topology has them.
using Places = std::map<std::string, topology::Object>;

/// Drivers differ in the case of the digits.
std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

Places places_of(const std::string& document) {
  Places places;
  if (document.empty()) return places;
  const Result<topology::Topology> machine = topology::Topology::from_xml(document);
  if (!machine) return places;
  for (const topology::Object& object : machine.value().objects()) {
    if (object.type == topology::ObjectType::kGpu && !object.pci_address.empty())
      places.try_emplace(lower_case(object.pci_address), object);
  }
  return places;
}

void write_devices(hid_t parent, const Model& model) {
  std::map<uint32_t, Places> nodes;
  const spool::HomeNodes homes(*model.job);
  Table table(parent, "devices", "devices that processes used");
  OwnerColumns owner(&table);
  auto& name = table.add_text("name", {"", "what the driver calls it"});
  auto& uuid = table.add_text("uuid", {"", "of the device, \"\" unknown"});
  auto& address = table.add_text("address", {"", "on its bus"});
  auto& cpus = table.add_text("cpus", {"", "hardware threads near it, \"\" unknown (/topology)"});
  auto& numa = table.add_text("numa_nodes", {"", "NUMA nodes near it, \"\" unknown"});
  for (const Group& group : model.groups) {
    if (group.process == nullptr) continue;
    for (const auto& [ordinal, device] : group.process->devices) {
      owner.append(group, ordinal);
      name.append(device.name);
      uuid.append(devices::uuid_text(device));
      address.append(device.address);
      const uint32_t home = homes.of(group.node);
      const auto [node, is_new] = nodes.try_emplace(home);
      if (is_new) node->second = places_of(model.job->nodes[home].topology_xml);
      const auto place = node->second.find(lower_case(device.address));
      const bool is_placed = place != node->second.end();
      cpus.append(is_placed ? place->second.cpus : "");
      numa.append(is_placed ? place->second.numa_nodes : "");
    }
  }
  table.finish();
}

/// How kernels of one name were launched: most of them.
struct ShapeColumns {
  explicit ShapeColumns(Table* table)
      : grid(table->add<uint32_t, 3>("grid",
                                     {"1", "blocks in x, y and z of most launches, 0 not told"})),
        block(
            table->add<uint32_t, 3>("block", {"1", "threads of a block in x, y and z, of those"})),
        registers(table->add<uint32_t>(
            "registers", {"1", "of a thread, of those; 255 or more are 255, 0 not told"})),
        shared(table->add<uint64_t>("shared_bytes", {"bytes", "of a block, of those"})),
        count(table->add<uint64_t>("shape_count", {"1", "how many launches these are"})),
        smallest(table->add<uint64_t>("min_blocks", {"1", "in the smallest grid of all"})),
        largest(table->add<uint64_t>("max_blocks", {"1", "in the largest grid of all"})) {}

  /// What the three values of grid and block are: a dimension of its own, as netCDF wants it.
  void add_axes(hid_t group) {
    Column<uint32_t> axis(group, "axis", {"1", "x, y and z"});
    for (uint32_t i = 0; i < 3; ++i) axis.append(i);
    axis.finish();
    checked(H5DSset_scale(axis.id(), "axis"), "dimension");
    checked(H5DSattach_scale(grid.id(), axis.id(), 1), "dimension");
    checked(H5DSattach_scale(block.id(), axis.id(), 1), "dimension");
  }

  void append(const profile::LaunchShapes& shapes) {
    const auto* most = shapes.most_frequent();
    const KernelShape shape = most != nullptr ? most->shape : KernelShape{};
    grid.append({shape.grid[0], shape.grid[1], shape.grid[2]});
    block.append({shape.block[0], shape.block[1], shape.block[2]});
    registers.append(shape.registers);
    shared.append(shape.shared_bytes);
    count.append(most != nullptr ? most->count : 0);
    smallest.append(shapes.min_blocks());
    largest.append(shapes.max_blocks());
  }

  Column<uint32_t, 3>& grid;
  Column<uint32_t, 3>& block;
  Column<uint32_t>& registers;
  Column<uint64_t>& shared;
  Column<uint64_t>& count;
  Column<uint64_t>& smallest;
  Column<uint64_t>& largest;
};

/// Beside the runtime's "(more names)", which is one name for many as well.
constexpr const char* kMoreKernels = "(more kernels)";

void write_times(hid_t parent, const char* path, const char* description, const Model& model,
                 const profile::DeviceWorkTable& work, DeviceOperation operation) {
  Table table(parent, path, description);
  OwnerColumns owner(&table);
  auto& region = table.add<uint32_t>("region", {"1", "row of /regions, 4294967295: of several"});
  auto& name = table.add_text("name", {"", "as its author wrote it"});
  TimeColumns times(&table);
  auto& histogram = table.add<uint64_t, profile::kHistogramBuckets>(
      "histogram", {"1", "of these by time: bucket b is 2^b to 2^(b+1) ns"});
  std::optional<ShapeColumns> shapes;
  if (operation == DeviceOperation::kKernel) shapes.emplace(&table);
  for (const DeviceRow& row : work.rows(operation)) {
    owner.append(model.groups[row.group], row.device);
    const bool is_more = row.region == profile::DeviceWorkTable::kMoreKernels;
    region.append(is_more ? UINT32_MAX : row.region);
    name.append(is_more ? kMoreKernels : model.regions[row.region].name);
    times.append(row);
    histogram.append(row.histogram);
    if (shapes) shapes->append(row.shapes);
  }
  table.finish();
  add_duration_buckets(table.group(), histogram.id());
  if (!shapes) return;
  shapes->add_axes(table.group());
  set_attribute(table.group(), "joined", static_cast<int64_t>(work.joined_count()));
}

void write_copies(hid_t parent, const Model& model, std::vector<DeviceRow> rows,
                  const std::vector<DeviceRow>& sets) {
  rows.insert(rows.end(), sets.begin(), sets.end());
  Table table(parent, "copies", "copies and sets of memory by process, device and kind");
  OwnerColumns owner(&table);
  auto& kind = table.add_text("kind", {"", "from where to where: host, device, array, peer"});
  auto& bytes = table.add<uint64_t>("bytes", {"bytes", "copied or set by all of them"});
  TimeColumns times(&table);
  for (const DeviceRow& row : rows) {
    owner.append(model.groups[row.group], row.device);
    kind.append(model.regions[row.region].name);
    bytes.append(row.bytes);
    times.append(row);
  }
  table.finish();
}

bool has_device(const Model& model) {
  return std::any_of(model.groups.begin(), model.groups.end(), [](const Group& group) {
    return group.process != nullptr && !group.process->devices.empty();
  });
}

}  // namespace

void write_gpu(hid_t file, const Model& model, const profile::DeviceWorkTable& work,
               const DeviceSummary* devices, const Outcome& outcome) {
  // Where all is missing no device is known.
  if (!has_device(model) && (devices == nullptr || devices->unrecorded.empty())) return;
  const Handle gpu = create_group(file, "gpu");
  write_devices(gpu.get(), model);
  write_times(gpu.get(), "kernels", "kernels by process, device and name", model, work,
              DeviceOperation::kKernel);
  write_times(gpu.get(), "graphs", "graphs that were recorded as one", model, work,
              DeviceOperation::kGraph);
  write_copies(gpu.get(), model, work.rows(DeviceOperation::kCopy),
               work.rows(DeviceOperation::kSet));
  if (devices != nullptr) write_gpu_use(gpu.get(), model, *devices);
  set_attribute(gpu.get(), "overlapping", static_cast<int64_t>(outcome.device_overlap_count));
  set_attribute(gpu.get(), "without_stream", static_cast<int64_t>(outcome.unplaced_device_count));
}

std::string joined_text(const profile::DeviceWorkTable& work) {
  if (work.joined_count() == 0) return {};
  return "/gpu/kernels has the kernels that took most time of each process: " +
         std::to_string(work.joined_count()) + " others are \"" + kMoreKernels + "\" of theirs";
}

}  // namespace aon::writers::hdf5
