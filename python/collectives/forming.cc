// Lets ranks find each other: opens the listener of each rank, and forms a
// group from all addresses.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "collectives/hierarchical/group.h"
#include "collectives/host/meeting.h"
#include "collectives/host/pool.h"
#include "collectives/net/address.h"
#include "collectives/net/assembly.h"
#include "collectives/net/group.h"
#include "collectives/net/listener.h"
#include "penstock/options.h"
#include "python/collectives/bindings.h"
#include "python/collectives/group.h"
#include "python/errors.h"
#include "python/gil.h"
#include "transport/settings/settings.h"

namespace penstock::python {
namespace {

namespace py = pybind11;
using collectives::HierarchicalGroup;
using collectives::Listener;
using collectives::NetGroupOptions;
using Addresses = std::vector<std::string>;

// A listener, until a group takes ownership.
struct ListenerObject {
  std::unique_ptr<Listener> listener;
};

std::unique_ptr<ListenerObject> Open(const std::string& host) {
  collectives::ListenerOptions options;
  options.host = host;
  options.settings = ValueOf(ResolveSettings(Options()));
  auto listener = [&options] {
    Unlocked unlocked;
    return Listener::Open(options);
  }();
  auto object = std::make_unique<ListenerObject>();
  object->listener = ValueOf(std::move(listener));
  return object;
}

std::string AddressOf(const ListenerObject& object) {
  if (object.listener == nullptr) {
    Throw(absl::FailedPreconditionError("a group has taken the listener"));
  }
  return object.listener->address();
}

Addresses Exchange(const std::string& target, const py::bytes& token, int rank,
                   int ranks, double timeout, const std::string& own) {
  collectives::AssemblyOptions options;
  options.target = target;
  options.token = token;
  options.rank = rank;
  options.ranks = ranks;
  options.timeout = absl::Seconds(timeout);
  auto addresses = [&] {
    Unlocked unlocked;
    return collectives::ExchangeAddresses(options, own);
  }();
  return ValueOf(std::move(addresses));
}

// Rounds up to the unit of a pool's size.
uint64_t WholePages(uint64_t bytes) {
  constexpr uint64_t kPage = collectives::kMinSlotBytes;
  return (bytes + kPage - 1) / kPage * kPage;
}

std::unique_ptr<GroupObject> Form(ListenerObject& object,
                                  const Addresses& addresses, int rank,
                                  double forming_timeout, double timeout,
                                  const std::string& algorithms,
                                  uint64_t pool_bytes) {
  (void)AddressOf(object);
  NetGroupOptions options;
  options.rank = rank;
  options.forming_timeout = absl::Seconds(forming_timeout);
  options.timeout = absl::Seconds(timeout);
  options.algorithms = algorithms;
  auto group = [&] {
    std::unique_ptr<Listener> listener = std::move(object.listener);
    Unlocked unlocked;
    return HierarchicalGroup::Form(std::move(listener), addresses, options,
                                   WholePages(pool_bytes));
  }();
  std::unique_ptr<HierarchicalGroup> formed = ValueOf(std::move(group));
  std::shared_ptr<collectives::Pool> pool = formed->pool();
  return std::make_unique<GroupObject>(std::move(formed), std::move(pool));
}

std::vector<int> HostsOf(const Addresses& addresses) {
  return collectives::NumberHosts(
      ValueOf(collectives::ParseAddresses(addresses)));
}

}  // namespace

void BindForming(py::module_& module) {
  py::class_<ListenerObject>(module, "Listener")
      .def(py::init(&Open))
      .def_property_readonly("address", &AddressOf);
  module.def("exchange_addresses", &Exchange);
  module.def("form", &Form);
  module.def("hosts_of", &HostsOf);
}

}  // namespace penstock::python
