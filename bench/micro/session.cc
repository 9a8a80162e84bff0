// Two sessions in one thread: what an RPC costs between gRPC and the fabric.

#include "transport/session/session.h"

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "bench/micro/shm_pair.h"
#include "benchmark/benchmark.h"
#include "transport/fabric/fake/link.h"
#include "transport/memory/bytes.h"
#include "transport/session/events.h"
#include "transport/wire/hello.h"

namespace penstock {
namespace bench {
namespace {

using fabric::fake::Link;
using fabric::fake::Side;
using session::Session;

constexpr char kToken[] = "0123456789abcdef";
// Of the usual metadata of a unary call.
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

memory::Payload MakeMessage() {
  return memory::Payload(memory::AllocateBlock(8).value().AsBytes());
}

// A session with the newest of its streams: takes what comes, and answers
// where it is the server.
class Peer : public session::SessionEvents, public session::StreamEvents {
 public:
  Peer(bool is_client, std::unique_ptr<fabric::Endpoint> lifeline)
      : is_client_(is_client),
        session_(MakeConfig(is_client), std::move(lifeline), this) {}

  Session* operator->() { return &session_; }
  void OpenStream(uint32_t stream) {
    stream_ = stream;
    session_.AttachStream(stream, this);
    session_.SendHeaders(stream, metadata_);
    session_.WantMessage(stream);
  }
  void SendMessage() { session_.SendMessage(stream_, MakeMessage(), false); }
  void HalfClose() { session_.SendHalfClose(stream_); }
  void Poll() {
    while (session_.Poll()) {
    }
    session_.Flush();
  }

  int64_t messages = 0;
  int64_t ended = 0;
  bool has_path = false;

 private:
  void OnStreamOpened(uint32_t stream) override {
    stream_ = stream;
    session_.AttachStream(stream, this);
    session_.WantMessage(stream);
  }
  void OnGoaway(uint32_t, const absl::Status&) override {}
  void OnPing() override {}
  void OnPong(uint64_t) override {}
  void OnConnectWanted(const std::string&, const std::string&,
                       const std::string&) override {}
  void OnListenWanted() override {}
  void OnPathChosen(const session::PathDescription&) override {
    has_path = true;
  }
  void OnClosed(const absl::Status&) override {}

  void OnHeaders(std::string) override {}
  void OnMessage(memory::Bytes, bool) override {
    ++messages;
    session_.Consumed(stream_);
    session_.WantMessage(stream_);
  }
  void OnMessageTooLarge(uint64_t) override {}
  void OnHalfClose() override {
    session_.SendHeaders(stream_, metadata_);
    SendMessage();
    session_.SendTrailers(stream_, metadata_);
    session_.DetachStream(stream_);
  }
  void OnTrailers(std::string) override {
    ++ended;
    session_.DetachStream(stream_);
  }
  void OnReset(const absl::Status&, bool) override {}
  void OnSendAccepted() override {}

  const bool is_client_;
  const std::string metadata_ = std::string(kMetadataBytes, 'h');
  uint32_t stream_ = 0;
  Session session_;
};

fabric::fake::LinkOptions LifelineOptions() {
  fabric::fake::LinkOptions options;
  options.is_lifeline = true;
  return options;
}

// A client and a server with a path over shared memory; only its set-up, and
// what it rings, goes over the fake lifeline.
struct SessionPair {
  explicit SessionPair(benchmark::State* state) {
    absl::StatusOr<ShmPair> shm = ConnectShm();
    if (!shm.ok()) {
      state->SkipWithError(shm.status().ToString().c_str());
      return;
    }
    client->Start();
    server->Start();
    Settle();
    server->AddFastPath("shm", std::move(shm->listening));
    client->AddFastPath("shm", std::move(shm->connecting));
    Settle();
    if (!client.has_path || !server.has_path) {
      state->SkipWithError("the sessions chose no path");
      return;
    }
    // As while somebody polls: nobody is rung.
    client->fast_path()->SetArmed(false);
    server->fast_path()->SetArmed(false);
    ok = true;
  }

  // Everything, everywhere.
  void Settle() {
    do {
      client->Flush();
      server->Flush();
      Move();
    } while (lifeline.Step());
  }
  void Move() {
    server.Poll();
    client.Poll();
  }

  Link lifeline{LifelineOptions()};
  Peer client{true, lifeline.Take(Side::kA)};
  Peer server{false, lifeline.Take(Side::kB)};
  bool ok = false;
};

// 8 bytes one way, on a stream that stays.
void SessionMessage(benchmark::State& state) {
  SessionPair pair(&state);
  if (!pair.ok) return;
  pair.client.OpenStream(1);
  for (auto _ : state) {
    pair.client.SendMessage();
    pair.client->Flush();
    pair.Move();
  }
  if (pair.server.messages != state.iterations()) {
    state.SkipWithError("messages were lost");
  }
}
BENCHMARK(SessionMessage);

// A unary call of 8 bytes each way: its six frames, both sides.
void SessionCall(benchmark::State& state) {
  SessionPair pair(&state);
  if (!pair.ok) return;
  uint32_t stream = 0;
  for (auto _ : state) {
    pair.client.OpenStream(++stream);
    pair.client.SendMessage();
    pair.client.HalfClose();
    pair.client->Flush();
    pair.Move();
  }
  if (pair.client.ended != state.iterations()) {
    state.SkipWithError("calls were lost");
  }
}
BENCHMARK(SessionCall);

}  // namespace
}  // namespace bench
}  // namespace penstock
