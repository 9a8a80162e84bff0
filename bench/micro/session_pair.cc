#include "bench/micro/session_pair.h"

#include <utility>

#include "absl/status/statusor.h"
#include "bench/micro/shm_pair.h"
#include "transport/wire/hello.h"

namespace penstock {
namespace bench {
namespace {

using fabric::fake::Side;

constexpr char kToken[] = "0123456789abcdef";
// The number of metadata bytes of a usual unary call.
constexpr size_t kMetadataBytes = 120;

session::Config MakeConfig(bool is_client) {
  session::Config config;
  config.is_client = is_client;
  wire::FabricOffer offer;
  offer.fabric = "shm";
  offer.usable = true;
  config.offers = {offer};
  if (!is_client) config.token = kToken;
  return config;
}

fabric::fake::LinkOptions LifelineOptions() {
  fabric::fake::LinkOptions options;
  options.is_lifeline = true;
  return options;
}

}  // namespace

SessionPeer::SessionPeer(bool is_client,
                         std::unique_ptr<fabric::Endpoint> lifeline)
    : metadata_(kMetadataBytes, 'h'),
      session_(MakeConfig(is_client), std::move(lifeline), this, this) {}

void SessionPeer::Attach(uint32_t stream) {
  stream_ = stream;
  session_.AttachStream(stream, this);
}

void SessionPeer::OpenStream(uint32_t stream) {
  Attach(stream);
  session_.output().SendHeaders(stream, metadata_);
  session_.input().WantMessage(stream);
}

void SessionPeer::Poll() {
  while (session_.Poll()) {
  }
  // Attaches a new stream only after all packets of the poll were handled, as
  // gRPC does.
  if (opened_ != 0) Attach(std::exchange(opened_, 0));
  session_.Flush();
}

void SessionPeer::OnMessage(const memory::Payload&, bool) {
  ++messages;
  session_.input().Consumed(stream_);
  session_.input().WantMessage(stream_);
}

void SessionPeer::OnHalfClose() {
  session_.output().SendHeaders(stream_, metadata_);
  SendMessage();
  session_.output().SendTrailers(stream_, metadata_);
  session_.streams().Detach(stream_);
}

void SessionPeer::OnTrailers(absl::string_view) {
  ++ended;
  session_.streams().Detach(stream_);
}

SessionPair::SessionPair()
    : lifeline_(LifelineOptions()),
      client(true, lifeline_.Take(Side::kA)),
      server(false, lifeline_.Take(Side::kB)) {
  absl::StatusOr<ShmPair> shm = ConnectShm();
  status_ = shm.status();
  if (!status_.ok()) return;
  client->Start();
  server->Start();
  Settle();
  server->path().Add("shm", std::move(shm->listening));
  client->path().Add("shm", std::move(shm->connecting));
  Settle();
  if (!client.has_path || !server.has_path) {
    status_ = absl::InternalError("the sessions chose no path");
    return;
  }
  // Suppress wake-ups, as if a thread were polling.
  client->path().endpoint()->SetArmed(false);
  server->path().endpoint()->SetArmed(false);
}

void SessionPair::Settle() {
  do {
    client->Flush();
    server->Flush();
    Move();
  } while (lifeline_.Step());
}

void SessionPair::Move() {
  server.Poll();
  client.Poll();
}

}  // namespace bench
}  // namespace penstock
