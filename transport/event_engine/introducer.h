// Turns TCP endpoints into connections, and seeks a path for each.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_INTRODUCER_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_INTRODUCER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpc/event_engine/event_engine.h"
#include "transport/base/mutex.h"
#include "transport/event_engine/meeting/place.h"
#include "transport/event_engine/meeting/tcp_address.h"
#include "transport/event_engine/rdma/rdma.h"
#include "transport/event_engine/threads/crew.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/shm/options.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace event_engine {

using grpc_event_engine::experimental::EventEngine;

// Receives the endpoint, or the reason why Policy::kRequire is not satisfied.
using OnEndpoint =
    std::function<void(absl::StatusOr<std::unique_ptr<EventEngine::Endpoint>>)>;

class Wrapping;

// Wraps the endpoint of a client's TCP connection, and asks the server for a
// path: over shared memory on one host, over RDMA otherwise. Calls `done`
// immediately, or, on one host with Policy::kRequire, after the server's
// answer. Between hosts, `done` cannot wait for the answer, because the answer
// needs the first bytes of TLS.
void WrapConnected(std::unique_ptr<EventEngine::Endpoint> tcp, Crew* crew,
                   const Settings& settings, OnEndpoint done,
                   const RdmaOpener& open_rdma = OpenRdma);

// The meeting places of one listener: one for each bound address. Thread-safe.
class MeetingPlaces {
 public:
  explicit MeetingPlaces(const Settings& settings,
                         RdmaOpener open_rdma = OpenRdma)
      : settings_(settings), open_rdma_(std::move(open_rdma)) {}

  // Opens the meeting place of a bound address, and its RDMA port. May block
  // for a quarter of a second if the name is taken. If the place cannot be
  // opened, or the RDMA port is taken, logs the reason, and connections stay on
  // TCP. Each accepted connection tries again, because the process that held
  // the name may have ended. For an RDMA port, tries again once a second at
  // most.
  void Open(const EventEngine::ResolvedAddress& bound, int port);
  // Frees the names and the RDMA ports. Connections that come later stay on
  // TCP.
  void Close();
  // Wraps an accepted endpoint, and waits for its client at the meeting place.
  // Calls `done` at the same time as WrapConnected() does.
  void WrapAccepted(std::unique_ptr<EventEngine::Endpoint> tcp, Crew* crew,
                    OnEndpoint done);

 private:
  // Returns the place at which clients of `server` are met, or null if it could
  // not be opened. Tries to open the place again if another server had its
  // name.
  std::shared_ptr<MeetingPlace> Find(const TcpAddress& server);

  // An RDMA port, or the reason why there is none.
  struct RdmaPort {
    bool was_taken() const { return absl::IsAlreadyExists(opened.status()); }
    absl::StatusOr<std::shared_ptr<fabric::Fabric>> opened;
    absl::Time next_opening;  // if it was taken
  };

  // Returns the RDMA port for clients of `server`, or the reason why there is
  // none. May block, if the port was taken before.
  absl::StatusOr<std::shared_ptr<fabric::Fabric>> FindRdma(
      const TcpAddress& server);
  void OpenMeetingPlace(const TcpAddress& address);
  void OpenRdmaPort(const TcpAddress& address);
  // Tries to open an RDMA port that another listener had taken.
  void ReopenRdmaPort(const TcpAddress& address);
  void WrapOnOneHost(std::shared_ptr<Wrapping> wrapping);
  void WrapBetweenHosts(std::shared_ptr<Wrapping> wrapping);

  const Settings settings_;
  const RdmaOpener open_rdma_;
  base::Mutex mu_;
  // Maps the socket's name to the meeting place, or to null if the name was
  // taken.
  std::map<std::string, std::shared_ptr<MeetingPlace>> places_
      ABSL_GUARDED_BY(mu_);
  // Maps the socket's name to the RDMA port.
  std::map<std::string, RdmaPort> rdma_ ABSL_GUARDED_BY(mu_);
};

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_INTRODUCER_H_
