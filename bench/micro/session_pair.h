// A client session and a server session in one thread.

#ifndef PENSTOCK_BENCH_MICRO_SESSION_PAIR_H_
#define PENSTOCK_BENCH_MICRO_SESSION_PAIR_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "transport/fabric/fake/link.h"
#include "transport/memory/bytes.h"
#include "transport/session/events.h"
#include "transport/session/session.h"

namespace penstock {
namespace bench {

// One side's session and its newest stream. Consumes incoming messages. The
// server's side also answers them.
class SessionPeer : public session::SessionEvents,
                    public session::PathEvents,
                    public session::StreamEvents {
 public:
  SessionPeer(bool is_client, std::unique_ptr<fabric::Endpoint> lifeline);

  session::Session* operator->() { return &session_; }
  void OpenStream(uint32_t stream);
  // Sends a message of 8 bytes.
  void SendMessage() {
    session_.output().SendEager(stream_, "8 bytes.", false);
  }
  void HalfClose() { session_.output().SendHalfClose(stream_); }
  void Poll();

  int64_t messages = 0;
  int64_t ended = 0;
  bool has_path = false;

 private:
  void OnStreamOpened(uint32_t stream) override { opened_ = stream; }
  void OnGoaway(uint32_t, const absl::Status&) override {}
  void OnPing() override {}
  void OnPong(uint64_t) override {}
  absl::Status OnEntry(uint32_t, absl::string_view) override {
    return absl::OkStatus();
  }
  void OnConnectWanted(const std::string&, const std::string&,
                       const std::string&) override {}
  void OnListenWanted() override {}
  void OnPathChosen(const session::PathDescription&) override {
    has_path = true;
  }
  void OnClosed(const absl::Status&) override {}

  void OnHeaders(absl::string_view) override {}
  void OnMessage(const memory::Payload&, bool) override;
  void OnMessageTooLarge(uint64_t) override {}
  void OnHalfClose() override;
  void OnTrailers(absl::string_view) override;
  void OnReset(const absl::Status&, bool) override {}
  void OnSendAccepted() override {}

  void Attach(uint32_t stream);

  const std::string metadata_;
  uint32_t stream_ = 0;
  // The id of a stream that the peer has opened and that is not attached yet,
  // or 0.
  uint32_t opened_ = 0;
  session::Session session_;
};

// Two sessions with a path over shared memory. The fake lifeline carries only
// the setup of that path, and doorbells.
class SessionPair {
 public:
  SessionPair();

  // Returns OK, or an error with the reason if this machine has no shared
  // memory.
  const absl::Status& status() const { return status_; }
  // Delivers the waiting messages to the server, then the answers to the
  // client.
  void Move();

 private:
  // Delivers all packets on both paths.
  void Settle();

  absl::Status status_;
  fabric::fake::Link lifeline_;

 public:
  SessionPeer client;
  SessionPeer server;
};

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_MICRO_SESSION_PAIR_H_
