#include "transport/fabric/verbs/device.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "transport/fabric/verbs/status.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

constexpr size_t kMaxGids = 256;

std::vector<ibv_gid_entry> GidsOf(Api* api, ibv_context* device) {
  std::vector<ibv_gid_entry> entries(kMaxGids);
  const ssize_t count =
      api->QueryGidTable(device, entries.data(), entries.size());
  entries.resize(count < 0 ? 0 : count);
  return entries;
}

bool IsGid(const ibv_gid_entry& entry, const Address& address) {
  return std::memcmp(entry.gid.raw, address.AsGid().data(),
                     sizeof entry.gid.raw) == 0;
}

// Returns the GID entry that the connection manager uses for `address` on a
// RoCE port. This is the v2 entry, unless there is none or the system is set to
// v1.
absl::optional<ibv_gid_entry> GidOf(Api* api, const rdma_cm_id& id,
                                    const Address& address) {
  absl::optional<ibv_gid_entry> found;
  for (const ibv_gid_entry& entry : GidsOf(api, id.verbs)) {
    if (entry.port_num != id.port_num || !IsGid(entry, address)) continue;
    if (!found.has_value()) found = entry;
    if (entry.gid_type == IBV_GID_TYPE_ROCE_V2) return entry;
  }
  return found;
}

bool IsWanted(Api* api, const rdma_cm_id& id, const Address& address,
              const Options& options) {
  if (!options.device.empty() &&
      options.device != api->GetDeviceName(id.verbs->device)) {
    return false;
  }
  if (options.port != 0 && options.port != id.port_num) return false;
  if (options.gid_index < 0) return true;
  for (const ibv_gid_entry& entry : GidsOf(api, id.verbs)) {
    if (entry.port_num == id.port_num && IsGid(entry, address) &&
        static_cast<int>(entry.gid_index) == options.gid_index) {
      return true;
    }
  }
  return false;
}

absl::StatusOr<std::vector<Address>> Candidates(const Options& options) {
  if (options.addresses.empty()) return InterfaceAddresses();
  std::vector<Address> addresses;
  for (const std::string& text : options.addresses) {
    absl::StatusOr<Address> address = Address::Parse(text, 0);
    if (!address.ok()) return address.status();
    addresses.push_back(*address);
  }
  return addresses;
}

std::string RestrictionText(const Options& options) {
  std::vector<std::string> parts = options.addresses;
  if (!options.device.empty()) {
    parts.push_back(absl::StrCat("device ", options.device));
  }
  if (options.port != 0) parts.push_back(absl::StrCat("port ", options.port));
  if (options.gid_index >= 0) {
    parts.push_back(absl::StrCat("GID index ", options.gid_index));
  }
  return absl::StrJoin(parts, ", ");
}

absl::Status NothingFound(const std::vector<std::string>& others,
                          const Options& options) {
  if (others.empty() && !options.addresses.empty()) {
    return absl::NotFoundError(absl::StrCat(
        absl::StrJoin(options.addresses, ", "),
        " is on no RDMA device here (see: rdma link; ip address)"));
  }
  if (others.empty()) {
    return absl::NotFoundError(
        "no RDMA device here has an address (see: rdma link; ip address)");
  }
  return absl::NotFoundError(
      absl::StrCat("no RDMA address here fits ", RestrictionText(options),
                   "; there is ", absl::StrJoin(others, ", ")));
}

// Returns the error of binding to the port of `options`.
absl::Status PortError(Api* api, const rdma_cm_id& id, const Options& options,
                       const Address& address, int error) {
  const uint16_t port = options.listen_port;
  switch (error) {
    case EACCES:
      return absl::PermissionDeniedError(
          absl::StrCat("RDMA port ", port, " of ", address.Text(),
                       " is not for this user: use a port from 1024 on, or "
                       "grant CAP_NET_BIND_SERVICE"));
    case EADDRINUSE:
    case EADDRNOTAVAIL:  // by a listener at the wildcard address
      return absl::AlreadyExistsError(absl::StrCat(
          "RDMA port ", port, " of ", address.Text(),
          " is taken by another listener (see: rdma resource show cm_id)"));
    default:
      return CallFailed(
          api, error,
          absl::StrCat("bind to RDMA port ", port, " of ", address.Text()),
          id.verbs);
  }
}

// Binds `id` to the port of `options`. If the address is on no device, returns
// OK, and `id` has no device.
absl::Status BindToPort(Api* api, rdma_cm_id* id, const Options& options,
                        Address* address) {
  address->set_port(options.listen_port);
  if (api->BindAddr(id, address->get()) == 0) return absl::OkStatus();
  const int error = errno;
  // Tries any other port, to distinguish an error of the port from a missing
  // device.
  address->set_port(0);
  (void)api->BindAddr(id, address->get());
  if (id->verbs == nullptr) return absl::OkStatus();
  return PortError(api, *id, options, *address, error);
}

// Returns an identifier for the address. Most addresses of a machine are not on
// an RDMA device; their identifiers have no device.
absl::StatusOr<CmId> Bind(Api* api, CmChannel* channel, const Options& options,
                          Address* address, const std::vector<Address>& known) {
  absl::StatusOr<CmId> id = channel->NewId();
  if (!id.ok()) return id;
  if (options.listen_port != 0) {
    absl::Status bound = BindToPort(api, id->get(), options, address);
    if (!bound.ok()) return bound;
    return id;
  }
  for (const Address& before : known) {
    if (before.AsGid() == address->AsGid()) address->set_port(before.port());
  }
  if (api->BindAddr(id->get(), address->get()) == 0 || address->port() == 0) {
    return id;
  }
  address->set_port(0);
  (void)api->BindAddr(id->get(), address->get());
  return id;
}

int Bytes(ibv_mtu mtu) { return 128 << mtu; }

}  // namespace

bool IsRestricted(const Options& options) {
  return !options.addresses.empty() || !options.device.empty() ||
         options.port != 0 || options.gid_index >= 0;
}

absl::StatusOr<std::vector<BoundId>> BindToDevices(
    Api* api, CmChannel* channel, const Options& options,
    const std::vector<Address>& known) {
  absl::StatusOr<std::vector<Address>> addresses = Candidates(options);
  if (!addresses.ok()) return addresses.status();
  std::vector<BoundId> bound;
  std::vector<std::string> others;
  for (Address& address : *addresses) {
    absl::StatusOr<CmId> id = Bind(api, channel, options, &address, known);
    if (!id.ok()) return id.status();
    if ((*id)->verbs == nullptr) continue;
    if (!IsWanted(api, **id, address, options)) {
      others.push_back(DescribeDevice(api, **id));
      continue;
    }
    address.set_port(ntohs(api->GetSrcPort(id->get())));
    bound.push_back(BoundId{*std::move(id), address});
    if (bound.size() == kMaxOffered) break;
  }
  if (bound.empty()) return NothingFound(others, options);
  return bound;
}

absl::Status SetIdOptions(Api* api, rdma_cm_id* id, const Options& options) {
  uint8_t timeout = options.ack_timeout;
  // Ignores a failure: kernels before 5.1 do not know the option, and use the
  // path's timeout.
  (void)api->SetOption(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
                       sizeof timeout);
  if (options.traffic_class < 0) return absl::OkStatus();
  uint8_t traffic_class = static_cast<uint8_t>(options.traffic_class);
  if (api->SetOption(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &traffic_class,
                     sizeof traffic_class) == 0) {
    return absl::OkStatus();
  }
  return CallFailed(api, errno, "set the traffic class", id->verbs);
}

std::string DescribeDevice(Api* api, const rdma_cm_id& id) {
  std::string text =
      absl::StrCat(api->GetDeviceName(id.verbs->device), "/", int{id.port_num});
  ibv_port_attr port = {};
  if (api->QueryPort(id.verbs, id.port_num, &port) != 0) return text;
  const char* kind = "InfiniBand";
  if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
    kind = "RoCE";
    absl::StatusOr<Address> address = Address::From(id.route.addr.src_addr);
    const absl::optional<ibv_gid_entry> gid =
        address.ok() ? GidOf(api, id, *address) : absl::nullopt;
    if (gid.has_value()) {
      kind = gid->gid_type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "RoCE v1";
      absl::StrAppend(&text, ", GID ", gid->gid_index);
    }
  }
  absl::StrAppend(&text, ", ", kind, ", mtu ", Bytes(port.active_mtu));
  return text;
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
