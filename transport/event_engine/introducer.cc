#include "transport/event_engine/introducer.h"

#include <arpa/inet.h>
#include <sys/un.h>

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "transport/base/log.h"
#include "transport/event_engine/connections.h"
#include "transport/event_engine/endpoint.h"
#include "transport/event_engine/meeting/call.h"
#include "transport/event_engine/movable_connection.h"

namespace penstock {
namespace event_engine {
namespace {

absl::optional<TcpAddress> AddressOf(
    const EventEngine::ResolvedAddress& address) {
  return TcpAddress::Of(address.address(), address.size());
}

// Returns a UNIX address as gRPC writes it. The socket of a client has no name.
std::string UnixSocketText(const EventEngine::ResolvedAddress& address) {
  constexpr size_t kBegin = offsetof(sockaddr_un, sun_path);
  if (address.address()->sa_family != AF_UNIX || address.size() <= kBegin) {
    return "unix:";
  }
  absl::string_view name(
      reinterpret_cast<const char*>(address.address()) + kBegin,
      address.size() - kBegin);
  const bool is_abstract = absl::ConsumePrefix(&name, absl::string_view("", 1));
  if (is_abstract) return absl::StrCat("unix-abstract:", name);
  return absl::StrCat("unix:", name.substr(0, name.find('\0')));
}

// Returns the address as gRPC writes it: an IPv4 address as such, even if the
// socket is of IPv6.
std::string TextOf(const EventEngine::ResolvedAddress& address) {
  const absl::optional<TcpAddress> tcp = AddressOf(address);
  if (!tcp.has_value()) return UnixSocketText(address);
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, tcp->ip.data(), text, sizeof text);
  absl::string_view ip = text;
  if (absl::ConsumePrefix(&ip, "::ffff:")) {
    return absl::StrCat("ipv4:", ip, ":", tcp->port);
  }
  return absl::StrCat("ipv6:%5B", ip, "%5D:", tcp->port);
}

fabric::shm::Options ShmOptions() {
  fabric::shm::Options options;
  // Admits only processes of this user, because only these can pass doorbells.
  // Without the peer's doorbell, a sleeping thread would not notice input.
  options.other_users = false;
  return options;
}

// One wrapping: the endpoint for gRPC, and its path.
class Wrapping : public std::enable_shared_from_this<Wrapping> {
 public:
  Wrapping(std::unique_ptr<EventEngine::Endpoint> tcp, Crew* crew,
           bool is_client, OnEndpoint done)
      : local_(tcp->GetLocalAddress()),
        peer_(tcp->GetPeerAddress()),
        connection_(std::make_shared<MovableConnection>(
            std::move(tcp), crew, is_client, TextOf(peer_))),
        done_(std::move(done)) {
    AddConnection(connection_);
  }

  absl::optional<TcpAddress> local() const { return AddressOf(local_); }
  absl::optional<TcpAddress> peer() const { return AddressOf(peer_); }

  // Gives gRPC the endpoint.
  void HandOver() {
    OnEndpoint done = std::move(done_);
    done_ = nullptr;
    done(std::make_unique<Endpoint>(connection_, local_, peer_));
  }
  void Refuse(const absl::Status& status) {
    OnEndpoint done = std::move(done_);
    done_ = nullptr;
    connection_->Close();
    done(absl::FailedPreconditionError(
        absl::StrCat("Penstock is required but not used: ", status.message())));
  }
  void OnPath(absl::StatusOr<std::unique_ptr<fabric::Endpoint>> path) {
    const absl::Status status = path.status();
    connection_->OnPath(std::move(path));
    if (done_ == nullptr) return;
    status.ok() ? HandOver() : Refuse(status);
  }

  // Tries to get a path by `seek`. If `is_required`, gRPC gets the endpoint
  // only after the first attempt.
  void SeekPath(bool is_required, MovableConnection::Seek seek) {
    // Gives the endpoint to gRPC before the attempt, because the attempt calls
    // back on another thread and also uses done_.
    if (!is_required) HandOver();
    connection_->SeekPath(
        std::move(seek),
        [self = shared_from_this()](
            absl::StatusOr<std::unique_ptr<fabric::Endpoint>> path) {
          self->OnPath(std::move(path));
        });
  }
  void StayOnTcp(bool is_required, const absl::Status& why) {
    connection_->OnPath(why);
    is_required ? Refuse(why) : HandOver();
  }

 private:
  const EventEngine::ResolvedAddress local_;
  const EventEngine::ResolvedAddress peer_;
  const std::shared_ptr<MovableConnection> connection_;
  OnEndpoint done_;  // null once called
};

bool AllowsShm(const Settings& settings) {
  return settings.Allows(FabricName(Fabric::kShm));
}

// Returns OK if the two ends may share memory.
absl::Status CheckPeer(const Settings& settings,
                       const absl::optional<TcpAddress>& local,
                       const absl::optional<TcpAddress>& peer) {
  if (!AllowsShm(settings)) {
    return absl::UnavailableError("the list of fabrics does not name shm");
  }
  if (!local.has_value() || !peer.has_value()) {
    return absl::UnavailableError("the connection is not over TCP");
  }
  if (IsOnOneHost(*local, *peer)) return absl::OkStatus();
  return absl::UnavailableError("the peer is on another host");
}

// Opens a place. If its name is taken, waits for up to a quarter of a second:
// a server that has just ended frees its TCP port a little before the name.
absl::StatusOr<std::shared_ptr<MeetingPlace>> OpenSoon(
    const TcpAddress& address) {
  constexpr absl::Duration kLongestPause = absl::Milliseconds(128);
  absl::Duration pause = absl::Milliseconds(1);
  for (;;) {
    absl::StatusOr<std::shared_ptr<MeetingPlace>> place =
        MeetingPlace::Open(address, ShmOptions());
    if (place.ok() || pause > kLongestPause) return place;
    absl::SleepFor(pause);
    pause *= 2;
  }
}

bool IsRequired(const Settings& settings) {
  return settings.policy == Policy::kRequire;
}

}  // namespace

void WrapConnected(std::unique_ptr<EventEngine::Endpoint> tcp, Crew* crew,
                   const Settings& settings, OnEndpoint done) {
  auto wrapping = std::make_shared<Wrapping>(
      std::move(tcp), crew, /*is_client=*/true, std::move(done));
  const auto local = wrapping->local();
  const auto peer = wrapping->peer();
  const absl::Status may = CheckPeer(settings, local, peer);
  if (!may.ok()) return wrapping->StayOnTcp(IsRequired(settings), may);
  wrapping->SeekPath(IsRequired(settings), [local = *local, peer = *peer](
                                               fabric::ConnectCallback found) {
    return MeetingCall::Start(local, peer, ShmOptions(), std::move(found));
  });
}

void MeetingPlaces::Open(const EventEngine::ResolvedAddress& bound, int port) {
  absl::optional<TcpAddress> address = AddressOf(bound);
  if (!address.has_value() || !AllowsShm(settings_)) return;
  address->port = static_cast<uint16_t>(port);
  absl::StatusOr<std::shared_ptr<MeetingPlace>> place = OpenSoon(*address);
  if (!place.ok()) {
    base::LogWarning(absl::StrCat(
        "port ", port,
        ": clients on this host stay on TCP: ", place.status().message()));
  }
  base::MutexLock lock(&mu_);
  places_[MeetingName(*address)] = place.ok() ? *std::move(place) : nullptr;
}

void MeetingPlaces::Close() {
  std::map<std::string, std::shared_ptr<MeetingPlace>> places;
  base::MutexLock lock(&mu_);
  places_.swap(places);
}

std::shared_ptr<MeetingPlace> MeetingPlaces::Find(const TcpAddress& server) {
  base::MutexLock lock(&mu_);
  for (const TcpAddress& address : {server, server.Wildcard()}) {
    auto it = places_.find(MeetingName(address));
    if (it == places_.end()) continue;
    if (it->second != nullptr) return it->second;
    // Opens the place again: another server had the name, and may have ended.
    absl::StatusOr<std::shared_ptr<MeetingPlace>> place =
        MeetingPlace::Open(address, ShmOptions());
    if (place.ok()) return it->second = *std::move(place);
  }
  return nullptr;
}

void MeetingPlaces::WrapAccepted(std::unique_ptr<EventEngine::Endpoint> tcp,
                                 Crew* crew, OnEndpoint done) {
  auto wrapping = std::make_shared<Wrapping>(
      std::move(tcp), crew, /*is_client=*/false, std::move(done));
  const auto local = wrapping->local();
  const auto peer = wrapping->peer();
  absl::Status may = CheckPeer(settings_, local, peer);
  std::shared_ptr<MeetingPlace> place;
  if (may.ok()) place = Find(*local);
  if (may.ok() && place == nullptr) {
    may = absl::UnavailableError("the name of this port's socket is taken");
  }
  if (!may.ok()) return wrapping->StayOnTcp(IsRequired(settings_), may);
  wrapping->SeekPath(
      IsRequired(settings_),
      // Weak, because a connection may outlive its listener. The listener's
      // name must be free then.
      [weak = std::weak_ptr<MeetingPlace>(place), local = *local,
       peer = *peer](fabric::ConnectCallback found)
          -> std::unique_ptr<fabric::PendingConnect> {
        const std::shared_ptr<MeetingPlace> place = weak.lock();
        if (place != nullptr) {
          return place->Expect(peer, local, std::move(found));
        }
        return fabric::FailLater(
            std::make_shared<fabric::Attempt>("", std::move(found)),
            absl::UnavailableError("the listener is gone"));
      });
}

}  // namespace event_engine
}  // namespace penstock
