// A fuzzed session and its application.

#ifndef PENSTOCK_TESTS_FUZZ_VICTIM_H_
#define PENSTOCK_TESTS_FUZZ_VICTIM_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/session_steps.h"
#include "transport/fabric/fabric.h"
#include "transport/memory/bytes.h"
#include "transport/session/events.h"
#include "transport/session/session.h"

namespace penstock {
namespace fuzz {

// The front end that the fuzz target imitates: the owner of a stream's calls.
enum class Manner {
  kGrpc,  // core::Stream: consumes a message when the application asks
  kRpc,   // rpc::ServerCall and ClientCall: consume messages immediately
};

// Checks that a stream's events respect events.h. Calls the session like real
// consumers.
class VictimStream : public session::StreamEvents {
 public:
  VictimStream(session::Session* session, uint32_t id, bool is_client,
               Manner manner)
      : session_(session), id_(id), is_client_(is_client), manner_(manner) {}

  void OnHeaders(absl::string_view) override {
    Require(!ended_, "headers in time");
  }
  void OnMessage(const memory::Payload& message, bool) override;
  void OnMessageTooLarge(uint64_t bytes) override;
  void OnHalfClose() override { Require(!ended_, "half-close in time"); }
  void OnTrailers(absl::string_view) override;
  void OnReset(const absl::Status&, bool) override { End(); }
  void OnSendAccepted() override;

  bool ended() const { return ended_; }
  // Ends the stream. No event may follow.
  void Detach();
  void NoteSendWaits() { ++sends_waiting_; }
  // Consumes the oldest message. On a client, also ends the stream if the
  // message was refused.
  void Consume();

 private:
  struct Message {
    memory::Payload payload;
    bool is_refused = false;
  };

  void End();
  // Tells the peer that a message was refused.
  void Refuse();

  session::Session* const session_;
  const uint32_t id_;
  const bool is_client_;
  const Manner manner_;
  bool ended_ = false;  // or detached
  int sends_waiting_ = 0;
  std::deque<Message> messages_;
};

// Calls the session like its owner, as the input demands.
class Victim : public session::SessionEvents, public session::PathEvents {
 public:
  Victim(bool is_client, Manner manner,
         std::unique_ptr<fabric::Endpoint> lifeline);

  session::Session& session() { return *session_; }
  // Executes one of the application's steps.
  void Take(Step step, Input* input);
  // Closes the session and drops all objects.
  void End();

  void OnStreamOpened(uint32_t stream) override;
  void OnGoaway(uint32_t, const absl::Status&) override {}
  void OnPing() override {}
  void OnPong(uint64_t) override {}
  absl::Status OnEntry(uint32_t, absl::string_view) override {
    return absl::OkStatus();
  }
  void OnConnectWanted(const std::string&, const std::string&,
                       const std::string&) override {}
  void OnListenWanted() override {}
  void OnPathChosen(const session::PathDescription&) override {}
  void OnClosed(const absl::Status&) override;

 private:
  void Attach(uint32_t stream);
  void UseStream(Step step, uint32_t stream, VictimStream* events,
                 Input* input);
  void Send(uint32_t stream, VictimStream* events, size_t bytes);
  void CallSession(int which);

  const bool is_client_;
  const Manner manner_;
  uint32_t last_opened_ = 0;
  bool closed_ = false;
  std::map<uint32_t, VictimStream> streams_;  // by id
  // Destroyed first, because it calls the other members.
  std::unique_ptr<session::Session> session_;
};

}  // namespace fuzz
}  // namespace penstock

#endif  // PENSTOCK_TESTS_FUZZ_VICTIM_H_
