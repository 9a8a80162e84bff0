#include "tests/transport/fabric/verbs/fake/fake_device.h"

#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/base/internal/raw_logging.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

constexpr uint32_t kFirstGuid = 0x02000000;

sockaddr_storage Parse(const std::string& text) {
  sockaddr_storage address = {};
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&address);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&address);
  if (inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
  } else if (inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
  } else {
    ABSL_RAW_LOG(FATAL, "not an address: %s", text.c_str());
  }
  return address;
}

// Returns an IPv4 address as the GID of its IPv4-mapped form.
ibv_gid GidOf(const sockaddr_storage& address) {
  ibv_gid gid = {};
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    std::memcpy(gid.raw, &v6.sin6_addr, sizeof gid.raw);
  } else {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    gid.raw[10] = gid.raw[11] = 0xff;
    std::memcpy(gid.raw + 12, &v4.sin_addr, 4);
  }
  return gid;
}

// Returns the LID of an InfiniBand device; 0 means none.
uint16_t LidOf(const FakeDevice& device) {
  if (device.options.link_layer == IBV_LINK_LAYER_ETHERNET) return 0;
  return static_cast<uint16_t>(1 + device.index);
}

bool IsAbout(const ibv_async_event& event, const void* object) {
  switch (event.event_type) {
    case IBV_EVENT_CQ_ERR:
      return event.element.cq == object;
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return event.element.qp == object;
    default:
      return false;
  }
}

}  // namespace

bool SameHost(const sockaddr* a, const sockaddr* b) {
  if (a->sa_family != b->sa_family) return false;
  if (a->sa_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(a)->sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in*>(b)->sin_addr.s_addr;
  }
  return std::memcmp(&reinterpret_cast<const sockaddr_in6*>(a)->sin6_addr,
                     &reinterpret_cast<const sockaddr_in6*>(b)->sin6_addr,
                     sizeof(in6_addr)) == 0;
}

FakeDevice* FakeDevices::Add(DeviceOptions options) {
  auto device = std::make_unique<FakeDevice>();
  device->index = static_cast<int>(all_.size());
  std::snprintf(device->entry.name, sizeof device->entry.name, "%s",
                options.name.c_str());
  std::snprintf(device->entry.dev_name, sizeof device->entry.dev_name,
                "uverbs%d", device->index);
  device->entry.node_type = IBV_NODE_CA;
  device->entry.transport_type = IBV_TRANSPORT_IB;
  device->device = &device->entry;
  device->cmd_fd = -1;
  device->async_fd = device->async_signal.fd();
  device->num_comp_vectors = options.comp_vectors;
  for (const std::string& address : options.addresses) {
    device->addresses.push_back(Parse(address));
  }
  device->options = std::move(options);
  all_.push_back(std::move(device));
  return all_.back().get();
}

FakeDevice* FakeDevices::Find(absl::string_view name) const {
  for (const auto& device : all_) {
    if (device->options.name == name) return device.get();
  }
  return nullptr;
}

FakeDevice* FakeDevices::FindByAddress(const sockaddr* address) const {
  for (const auto& device : all_) {
    if (device->removed) continue;
    for (const sockaddr_storage& own : device->addresses) {
      if (SameHost(reinterpret_cast<const sockaddr*>(&own), address)) {
        return device.get();
      }
    }
  }
  return nullptr;
}

FakeDevice* FakeDevices::FindByRoute(const FakeDevice& from,
                                     const ibv_ah_attr& address) const {
  const bool is_ethernet = from.options.link_layer == IBV_LINK_LAYER_ETHERNET;
  // Limits the source addresses: RoCE has only global addresses, and the source
  // must be one of the port's own.
  const size_t gids = from.addresses.size() * from.options.gid_types.size();
  if (is_ethernet && (!address.is_global || address.grh.sgid_index >= gids)) {
    return nullptr;
  }
  for (const auto& device : all_) {
    if (device->removed) continue;
    if (!is_ethernet && address.dlid == LidOf(*device)) return device.get();
    if (!is_ethernet) continue;
    for (const sockaddr_storage& own : device->addresses) {
      const ibv_gid gid = GidOf(own);
      if (std::memcmp(gid.raw, address.grh.dgid.raw, sizeof gid.raw) == 0) {
        return device.get();
      }
    }
  }
  return nullptr;
}

int FakeDevices::QueryDevice(ibv_context* context,
                             ibv_device_attr* attr) const {
  const FakeDevice& device = *Of(context);
  const DeviceOptions& options = device.options;
  if (device.removed) return EIO;
  *attr = ibv_device_attr();
  std::snprintf(attr->fw_ver, sizeof attr->fw_ver, "fake");
  attr->node_guid = htobe64(kFirstGuid + device.index);
  attr->sys_image_guid = attr->node_guid;
  attr->max_mr_size = options.max_mr_bytes;
  attr->page_size_cap = 4096;
  attr->max_qp = 65536;
  attr->max_qp_wr = options.max_qp_wr;
  attr->device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN;
  if (options.has_windows) {
    attr->device_cap_flags |= IBV_DEVICE_MEM_WINDOW |
                              IBV_DEVICE_MEM_WINDOW_TYPE_2B |
                              IBV_DEVICE_MEM_MGT_EXTENSIONS;
    attr->max_mw = 65536;
  }
  attr->max_sge = options.max_sge;
  attr->max_sge_rd = options.max_sge;
  attr->max_cq = 65536;
  attr->max_cqe = options.max_cqe;
  attr->max_mr = 65536;
  attr->max_pd = 65536;
  attr->max_qp_rd_atom = options.max_qp_rd_atom;
  attr->max_qp_init_rd_atom = options.max_qp_rd_atom;
  attr->max_srq = 65536;
  attr->max_srq_wr = options.max_srq_wr;
  attr->max_srq_sge = options.max_srq_sge;
  attr->phys_port_cnt = 1;
  return 0;
}

int FakeDevices::QueryPort(ibv_context* context, uint8_t port,
                           ibv_port_attr* attr) const {
  const FakeDevice& device = *Of(context);
  if (device.removed) return EIO;
  if (port != 1) return EINVAL;
  *attr = ibv_port_attr();
  attr->state = device.port_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  attr->max_mtu = IBV_MTU_4096;
  attr->active_mtu = IBV_MTU_1024;
  attr->gid_tbl_len = static_cast<int>(device.addresses.size() *
                                       device.options.gid_types.size());
  attr->max_msg_sz = device.options.max_message_bytes;
  attr->lid = LidOf(device);
  attr->link_layer = static_cast<uint8_t>(device.options.link_layer);
  return 0;
}

size_t FakeDevices::QueryGidTable(ibv_context* context, ibv_gid_entry* entries,
                                  size_t max_entries) const {
  const FakeDevice& device = *Of(context);
  size_t count = 0;
  for (const sockaddr_storage& address : device.addresses) {
    for (const uint32_t type : device.options.gid_types) {
      if (count == max_entries) return count;
      entries[count] = ibv_gid_entry();
      entries[count].gid = GidOf(address);
      entries[count].gid_index = static_cast<uint32_t>(count);
      entries[count].port_num = 1;
      entries[count].gid_type = type;
      entries[count].ndev_ifindex = 2 + device.index;
      ++count;
    }
  }
  return count;
}

void FakeDevices::Report(ibv_context* context, ibv_event_type type,
                         decltype(ibv_async_event::element) element) {
  ibv_async_event event = {};
  event.element = element;
  event.event_type = type;
  Of(context)->async_events.push_back(event);
  Of(context)->async_signal.Signal();
}

bool FakeDevices::TakeAsync(ibv_context* context, ibv_async_event* event) {
  FakeDevice& device = *Of(context);
  if (device.async_events.empty()) return false;
  *event = device.async_events.front();
  device.async_events.pop_front();
  return true;
}

void FakeDevices::ForgetAsync(ibv_context* context, const void* object) {
  FakeDevice& device = *Of(context);
  auto& events = device.async_events;
  for (auto event = events.begin(); event != events.end();) {
    if (IsAbout(*event, object)) {
      event = events.erase(event);
      device.async_signal.TakeBack();
    } else {
      ++event;
    }
  }
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
