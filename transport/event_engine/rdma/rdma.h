// Paths over RDMA for TCP connections between hosts.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_RDMA_RDMA_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_RDMA_RDMA_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "transport/event_engine/meeting/tcp_address.h"
#include "transport/fabric/fabric.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace event_engine {

// Opens the RDMA devices at the address `local`, or all devices for a wildcard
// address. Listens at `port` of the port space RDMA_PS_TCP, or at any free port
// if `port` is 0. Fails if there is no such device, if the port is taken, or in
// a build without RDMA. The first call opens the libraries and may block for
// some milliseconds. Thread-safe.
absl::StatusOr<std::shared_ptr<fabric::Fabric>> OpenRdma(
    const Settings& settings, const TcpAddress& local, uint16_t port);
// A function like OpenRdma().
using RdmaOpener =
    std::function<absl::StatusOr<std::shared_ptr<fabric::Fabric>>(
        const Settings& settings, const TcpAddress& local, uint16_t port)>;

// Asks the server for a path at its RDMA port, which has the same address and
// number as its TCP port. Presents `token`. Asks a few times, because the
// server may not have completed TLS's handshake yet. Calls `done` once, unless
// the handle is destroyed first.
std::unique_ptr<fabric::PendingConnect> CallByRdma(
    std::shared_ptr<fabric::Fabric> rdma, const TcpAddress& server,
    const std::string& token, fabric::ConnectCallback done);

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_RDMA_RDMA_H_
