// One end of a simulated RPC: an application that acts at random and checks its
// events.

#ifndef PENSTOCK_TESTS_TRANSPORT_SESSION_SIMULATED_CALL_H_
#define PENSTOCK_TESTS_TRANSPORT_SESSION_SIMULATED_CALL_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "transport/memory/bytes.h"
#include "transport/session/events.h"
#include "transport/session/session.h"

namespace penstock {
namespace session {

using Random = std::mt19937;

// The intended actions of the two ends of an RPC, and the actions that ended
// the RPC. Shared by both ends.
struct CallPlan {
  uint32_t stream = 0;
  std::vector<size_t> requests;   // sizes
  std::vector<size_t> responses;  // sizes
  // True if the server may end the call before the client's half-close.
  bool ends_early = false;
  // The probability that a step gives up the call, in percent.
  int client_cancels = 0;
  int server_aborts = 0;

  bool cancelled = false;     // by the client
  bool aborted = false;       // by the server: its trailers drop the rest
  bool session_lost = false;  // the call may now end with any status
};

// State that all calls of a simulation share.
struct CallWorld {
  explicit CallWorld(uint32_t seed) : random(seed) {}
  Random random;
  // Every payload that was sent. All of them must be dropped at the end.
  std::vector<std::weak_ptr<const void>> payloads;
  std::vector<std::string> errors;
};

class SimulatedCall : public StreamEvents {
 public:
  // Makes one side of a call. `world` and `plan` must outlive the call. The
  // caller attaches the call to its stream. A server's call is attached once
  // the client has opened the stream.
  SimulatedCall(CallWorld* world, CallPlan* plan, Session* session,
                bool is_client);

  void OnHeaders(absl::string_view metadata) override;
  void OnMessage(const memory::Payload& message, bool compressed) override;
  void OnMessageTooLarge(uint64_t bytes) override;
  void OnHalfClose() override;
  void OnTrailers(absl::string_view metadata) override;
  void OnReset(const absl::Status& status, bool from_peer) override;
  void OnSendAccepted() override;

  // Does one of the possible actions. With `hurry`, never gives up. Returns
  // false if the call can only wait.
  bool Act(bool hurry);
  bool ended() const { return ended_; }
  // Drops kept messages, which may hold loans.
  void LetGo() { held_.clear(); }
  // Returns the event that the call waits for, for debugging.
  std::string Describe() const;

 private:
  uint32_t Roll(uint32_t n) { return world_->random() % n; }
  bool Send();
  bool PostReceive();
  bool MayEnd() const;
  void GiveUp();
  void TakeOldest();
  void CheckMessage(const memory::Payload& message, bool compressed);
  void Expect(bool holds, const std::string& what);
  void End();
  const std::vector<size_t>& outgoing() const {
    return is_client_ ? plan_->requests : plan_->responses;
  }
  const std::vector<size_t>& incoming() const {
    return is_client_ ? plan_->responses : plan_->requests;
  }

  CallWorld* const world_;
  CallPlan* const plan_;
  Session* const session_;
  const bool is_client_;

  bool headers_sent_ = false;
  bool headers_received_ = false;
  size_t sent_ = 0;
  bool waits_for_window_ = false;
  bool sent_all_ = false;  // including half-close or trailers
  size_t received_ = 0;
  bool receives_ = false;     // the application waits for a message
  bool read_closed_ = false;  // the client has half-closed
  std::deque<memory::Payload> queue_;
  std::vector<memory::Payload> held_;
  bool ended_ = false;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_SESSION_SIMULATED_CALL_H_
