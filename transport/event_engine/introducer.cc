#include "transport/event_engine/introducer.h"

#include <sys/un.h>

#include <cstddef>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "transport/base/log.h"
#include "transport/base/steady_time.h"
#include "transport/event_engine/connections.h"
#include "transport/event_engine/endpoint.h"
#include "transport/event_engine/meeting/call.h"
#include "transport/event_engine/movable_connection.h"
#include "transport/fabric/shm/segment.h"

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

// Returns the address as gRPC writes it. An IPv4 address is written as such,
// even if the socket is an IPv6 socket.
std::string TextOf(const EventEngine::ResolvedAddress& address) {
  const absl::optional<TcpAddress> tcp = AddressOf(address);
  if (!tcp.has_value()) return UnixSocketText(address);
  const std::string ip = tcp->IpText();
  if (!absl::StrContains(ip, ':')) {
    return absl::StrCat("ipv4:", ip, ":", tcp->port);
  }
  return absl::StrCat("ipv6:%5B", ip, "%5D:", tcp->port);
}

fabric::shm::Options ShmOptions(const Settings& settings) {
  fabric::shm::Options options;
  options.always_copy = settings.shm_sharing == ShmSharing::kCopy;
  // Admits only processes of this user, because only these processes can pass
  // doorbells. Without the peer's doorbell, a sleeping thread would not notice
  // input.
  options.other_users = false;
  options.copies_with_doorbells = true;
  return options;
}

}  // namespace

// A TCP connection that is being wrapped: the endpoint for gRPC, and its path.
class Wrapping : public std::enable_shared_from_this<Wrapping> {
 public:
  Wrapping(std::unique_ptr<EventEngine::Endpoint> tcp, Crew* crew,
           bool is_client, const Settings& settings, OnEndpoint done)
      : local_(tcp->GetLocalAddress()),
        peer_(tcp->GetPeerAddress()),
        is_required_(settings.policy == Policy::kRequire),
        connection_(std::make_shared<MovableConnection>(
            std::move(tcp), crew, is_client, is_required_, TextOf(peer_))),
        done_(std::move(done)) {
    AddConnection(connection_);
  }

  absl::optional<TcpAddress> local() const { return AddressOf(local_); }
  absl::optional<TcpAddress> peer() const { return AddressOf(peer_); }

  // Gives the endpoint to gRPC.
  void HandOver() {
    OnEndpoint done = std::move(done_);
    done_ = nullptr;
    done(std::make_unique<Endpoint>(connection_, local_, peer_));
  }
  void Refuse(const absl::Status& status) {
    OnEndpoint done = std::move(done_);
    done_ = nullptr;
    connection_->Close();
    done(RequiredButNotUsed(status));
  }
  void OnPath(absl::StatusOr<std::unique_ptr<fabric::Endpoint>> path) {
    const absl::Status used = connection_->OnPath(std::move(path));
    if (done_ == nullptr) return;
    used.ok() ? HandOver() : Refuse(used);
  }

  // Tries to get a path, by calling `seek`. If a path is required, gRPC gets
  // the endpoint only after the first attempt.
  void SeekPath(MovableConnection::Seek seek) {
    // Gives the endpoint to gRPC before the attempt, because the attempt calls
    // back on another thread and also uses done_.
    if (!is_required_) HandOver();
    connection_->SeekPath(
        std::move(seek),
        [self = shared_from_this()](
            absl::StatusOr<std::unique_ptr<fabric::Endpoint>> path) {
          self->OnPath(std::move(path));
        });
  }
  // Tries to get a path between hosts. `by_token` makes the function that
  // begins an attempt with a token.
  using SeekBy =
      std::function<MovableConnection::Seek(const std::string& token)>;
  void SeekPathByTls(const std::string& connection, SeekBy by_token) {
    connection_->AwaitTls(
        FabricName(Fabric::kVerbs),
        [self = shared_from_this(), connection,
         by_token](absl::StatusOr<std::string> opening) {
          if (!opening.ok()) return self->OnPath(opening.status());
          self->connection_->SeekPath(
              by_token(connection + *opening),
              [self](absl::StatusOr<std::unique_ptr<fabric::Endpoint>> path) {
                self->OnPath(std::move(path));
              });
        });
    HandOver();
  }
  void StayOnTcp(const absl::Status& why) {
    (void)connection_->OnPath(why);
    is_required_ ? Refuse(why) : HandOver();
  }

 private:
  const EventEngine::ResolvedAddress local_;
  const EventEngine::ResolvedAddress peer_;
  const bool is_required_;
  const std::shared_ptr<MovableConnection> connection_;
  OnEndpoint done_;  // null once called
};

namespace {

bool Allows(const Settings& settings, Fabric fabric) {
  if (fabric == Fabric::kShm && settings.shm_sharing == ShmSharing::kOff) {
    return false;
  }
  return settings.Allows(FabricName(fabric));
}

// Returns the fabric that may connect the two ends.
absl::StatusOr<Fabric> Choose(const Settings& settings,
                              const Wrapping& wrapping) {
  if (!wrapping.local().has_value() || !wrapping.peer().has_value()) {
    return absl::UnavailableError("the connection is not over TCP");
  }
  const bool on_one_host = IsOnOneHost(*wrapping.local(), *wrapping.peer());
  if (on_one_host && Allows(settings, Fabric::kShm)) return Fabric::kShm;
  if (Allows(settings, Fabric::kVerbs)) return Fabric::kVerbs;
  return absl::UnavailableError(
      on_one_host ? "the settings exclude shm (PENSTOCK_FABRICS, "
                    "PENSTOCK_SHM_SHARING)"
                  : "the peer is on another host, and the list of fabrics does "
                    "not name verbs");
}

std::unique_ptr<fabric::PendingConnect> ListenerIsGone(
    fabric::ConnectCallback found) {
  return fabric::FailLater(
      std::make_shared<fabric::Attempt>("", std::move(found)),
      absl::UnavailableError("the listener is gone"));
}

absl::Status NoRdma(const absl::Status& why) {
  return absl::UnavailableError(absl::StrCat("no RDMA: ", why.message()));
}

// Opens a place. If the name is taken, waits for up to a quarter of a second: a
// server that has just ended frees its TCP port shortly before the name.
absl::StatusOr<std::shared_ptr<MeetingPlace>> OpenSoon(
    const Settings& settings, const TcpAddress& address) {
  constexpr absl::Duration kLongestPause = absl::Milliseconds(128);
  absl::Duration pause = absl::Milliseconds(1);
  const bool may_help = fabric::shm::CheckKernel().ok();
  for (;;) {
    absl::StatusOr<std::shared_ptr<MeetingPlace>> place =
        MeetingPlace::Open(address, ShmOptions(settings));
    if (place.ok() || !may_help || pause > kLongestPause) return place;
    absl::SleepFor(pause);
    pause *= 2;
  }
}

// Returns when to try again to open a taken RDMA port. A failed attempt may
// block for some milliseconds, and a stranger can connect often.
absl::Time NextOpening() { return base::SteadyNow() + absl::Seconds(1); }

}  // namespace

void WrapConnected(std::unique_ptr<EventEngine::Endpoint> tcp, Crew* crew,
                   const Settings& settings, OnEndpoint done,
                   const RdmaOpener& open_rdma) {
  auto wrapping = std::make_shared<Wrapping>(
      std::move(tcp), crew, /*is_client=*/true, settings, std::move(done));
  const absl::StatusOr<Fabric> chosen = Choose(settings, *wrapping);
  if (!chosen.ok()) return wrapping->StayOnTcp(chosen.status());
  const TcpAddress local = *wrapping->local(), peer = *wrapping->peer();
  if (*chosen == Fabric::kShm) {
    return wrapping->SeekPath([local, peer, options = ShmOptions(settings)](
                                  fabric::ConnectCallback found) {
      return MeetingCall::Start(local, peer, options, std::move(found));
    });
  }
  const auto rdma = open_rdma(settings, local, 0);
  if (!rdma.ok()) {
    return wrapping->StayOnTcp(NoRdma(rdma.status()));
  }
  wrapping->SeekPathByTls(
      MeetingToken(local, peer),
      [rdma = *rdma, peer](const std::string& token) {
        return [rdma, peer, token](fabric::ConnectCallback found) {
          return CallByRdma(rdma, peer, token, std::move(found));
        };
      });
}

void MeetingPlaces::Open(const EventEngine::ResolvedAddress& bound, int port) {
  absl::optional<TcpAddress> address = AddressOf(bound);
  if (!address.has_value()) return;
  address->port = static_cast<uint16_t>(port);
  if (Allows(settings_, Fabric::kShm)) OpenMeetingPlace(*address);
  if (Allows(settings_, Fabric::kVerbs)) OpenRdmaPort(*address);
}

void MeetingPlaces::OpenMeetingPlace(const TcpAddress& address) {
  // Returns if the name is already open: 0.0.0.0 and [::] have the same name.
  if (Find(address) != nullptr) return;
  absl::StatusOr<std::shared_ptr<MeetingPlace>> place =
      OpenSoon(settings_, address);
  if (!place.ok()) {
    base::LogWarning(absl::StrCat(
        "port ", address.port,
        ": clients on this host stay on TCP: ", place.status().message()));
  }
  base::MutexLock lock(&mu_);
  places_[MeetingName(address)] = place.ok() ? *std::move(place) : nullptr;
}

// Logs nothing on a machine without RDMA, which is usual.
void MeetingPlaces::OpenRdmaPort(const TcpAddress& address) {
  auto rdma = open_rdma_(settings_, address, address.port);
  if (absl::IsAlreadyExists(rdma.status()) ||
      absl::IsPermissionDenied(rdma.status())) {
    base::LogWarning(absl::StrCat(
        "port ", address.port,
        ": clients on other hosts stay on TCP: ", rdma.status().message()));
  }
  base::MutexLock lock(&mu_);
  rdma_.insert_or_assign(MeetingName(address),
                         RdmaPort{std::move(rdma), NextOpening()});
}

void MeetingPlaces::Close() {
  decltype(places_) places;
  decltype(rdma_) rdma;
  base::MutexLock lock(&mu_);
  places_.swap(places);
  rdma_.swap(rdma);
}

std::shared_ptr<MeetingPlace> MeetingPlaces::Find(const TcpAddress& server) {
  base::MutexLock lock(&mu_);
  for (const TcpAddress& address : {server, server.Wildcard()}) {
    auto it = places_.find(MeetingName(address));
    if (it == places_.end()) continue;
    if (it->second != nullptr) return it->second;
    // Opens the place again, because another server that had the name may have
    // ended.
    absl::StatusOr<std::shared_ptr<MeetingPlace>> place =
        MeetingPlace::Open(address, ShmOptions(settings_));
    if (place.ok()) return it->second = *std::move(place);
  }
  return nullptr;
}

absl::StatusOr<std::shared_ptr<fabric::Fabric>> MeetingPlaces::FindRdma(
    const TcpAddress& server) {
  for (const TcpAddress& address : {server, server.Wildcard()}) {
    ReopenRdmaPort(address);
    base::MutexLock lock(&mu_);
    auto it = rdma_.find(MeetingName(address));
    if (it != rdma_.end()) return it->second.opened;
  }
  return absl::UnavailableError("this port has no RDMA port");
}

void MeetingPlaces::ReopenRdmaPort(const TcpAddress& address) {
  const std::string name = MeetingName(address);
  {
    base::MutexLock lock(&mu_);
    auto it = rdma_.find(name);
    if (it == rdma_.end() || !it->second.was_taken() ||
        base::SteadyNow() < it->second.next_opening) {
      return;
    }
    it->second.next_opening = NextOpening();
  }
  auto rdma = open_rdma_(settings_, address, address.port);
  base::MutexLock lock(&mu_);
  auto it = rdma_.find(name);
  // Uses the port that another thread has opened meanwhile. The lock is
  // released before `rdma` is destroyed.
  if (it != rdma_.end() && it->second.was_taken()) {
    std::swap(it->second.opened, rdma);
  }
}

void MeetingPlaces::WrapAccepted(std::unique_ptr<EventEngine::Endpoint> tcp,
                                 Crew* crew, OnEndpoint done) {
  auto wrapping = std::make_shared<Wrapping>(
      std::move(tcp), crew, /*is_client=*/false, settings_, std::move(done));
  const absl::StatusOr<Fabric> chosen = Choose(settings_, *wrapping);
  if (!chosen.ok()) {
    return wrapping->StayOnTcp(chosen.status());
  }
  if (*chosen == Fabric::kShm) return WrapOnOneHost(std::move(wrapping));
  WrapBetweenHosts(std::move(wrapping));
}

void MeetingPlaces::WrapOnOneHost(std::shared_ptr<Wrapping> wrapping) {
  const TcpAddress local = *wrapping->local(), peer = *wrapping->peer();
  const std::shared_ptr<MeetingPlace> place = Find(local);
  if (place == nullptr) {
    return wrapping->StayOnTcp(
        absl::UnavailableError("the name of this port's socket is taken"));
  }
  // A weak reference, because a connection may outlive its listener, and the
  // listener's name must be free then.
  const std::weak_ptr<MeetingPlace> weak = place;
  wrapping->SeekPath([weak, local, peer](fabric::ConnectCallback found) {
    const std::shared_ptr<MeetingPlace> place = weak.lock();
    if (place == nullptr) {
      return ListenerIsGone(std::move(found));
    }
    return place->Expect(peer, local, std::move(found));
  });
}

void MeetingPlaces::WrapBetweenHosts(std::shared_ptr<Wrapping> wrapping) {
  const TcpAddress local = *wrapping->local(), peer = *wrapping->peer();
  const auto rdma = FindRdma(local);
  if (!rdma.ok()) {
    return wrapping->StayOnTcp(NoRdma(rdma.status()));
  }
  const std::weak_ptr<fabric::Fabric> weak = *rdma;
  wrapping->SeekPathByTls(
      MeetingToken(peer, local), [weak](const std::string& token) {
        return [weak, token](fabric::ConnectCallback found) {
          const std::shared_ptr<fabric::Fabric> rdma = weak.lock();
          if (rdma == nullptr) return ListenerIsGone(std::move(found));
          return rdma->Listen(token, std::move(found));
        };
      });
}

}  // namespace event_engine
}  // namespace penstock
