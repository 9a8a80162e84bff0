// Two hosts with simulated RDMA devices, and a TCP connection in memory.

#ifndef PENSTOCK_TESTS_TRANSPORT_EVENT_ENGINE_HOSTS_H_
#define PENSTOCK_TESTS_TRANSPORT_EVENT_ENGINE_HOSTS_H_

#include <cstdint>
#include <memory>

#include "tests/transport/event_engine/fake_tcp.h"
#include "tests/transport/event_engine/user.h"
#include "tests/transport/fabric/verbs/fake/fake_verbs.h"
#include "transport/event_engine/introducer.h"
#include "transport/fabric/verbs/fabric.h"

namespace penstock {
namespace event_engine {

constexpr uint16_t kServerPort = 50051;

inline TcpAddress TcpOf(const EventEngine::ResolvedAddress& address) {
  return *TcpAddress::Of(address.address(), address.size());
}

struct Hosts {
  Hosts() {
    fabric::verbs::DeviceOptions device;
    device.name = "client";
    device.addresses = {"10.0.0.1"};
    api_->AddDevice(device);
    device.name = "server";
    device.addresses = {"10.0.0.2"};
    api_->AddDevice(device);
  }

  RdmaOpener Opener() {
    return [api = api_](const Settings&, const TcpAddress& local, uint16_t port)
               -> absl::StatusOr<std::shared_ptr<fabric::Fabric>> {
      fabric::verbs::Options options;
      options.addresses = {local.IpText()};
      options.listen_port = port;
      options.setup_timeout = absl::Seconds(2);
      auto rdma = std::make_shared<fabric::verbs::VerbsFabric>(options, api);
      const auto offer = rdma->Offer();
      if (!offer.ok()) return offer.status();
      return rdma;
    };
  }
  // Return an end of the TCP connection.
  std::unique_ptr<FakeTcp> ClientSide() {
    return std::make_unique<FakeTcp>(down_, up_, client_address_,
                                     server_address_);
  }
  std::unique_ptr<FakeTcp> ServerSide() {
    return std::make_unique<FakeTcp>(up_, down_, server_address_,
                                     client_address_);
  }

  // Never destroyed, because the event loop may still use it.
  fabric::verbs::FakeVerbs* const api_ = new fabric::verbs::FakeVerbs;
  const EventEngine::ResolvedAddress client_address_ =
      AddressAt("10.0.0.1", 40000);
  const EventEngine::ResolvedAddress server_address_ =
      AddressAt("10.0.0.2", kServerPort);
  const std::shared_ptr<Pipe> up_ = std::make_shared<Pipe>(GetCrew());
  const std::shared_ptr<Pipe> down_ = std::make_shared<Pipe>(GetCrew());
};

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_EVENT_ENGINE_HOSTS_H_
