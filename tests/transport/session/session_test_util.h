// Two sessions over fake links, with owners that write down what they are told.

#ifndef PENSTOCK_TESTS_TRANSPORT_SESSION_SESSION_TEST_UTIL_H_
#define PENSTOCK_TESTS_TRANSPORT_SESSION_SESSION_TEST_UTIL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/fake/link.h"
#include "transport/memory/bytes.h"
#include "transport/session/events.h"
#include "transport/session/session.h"

namespace penstock {
namespace session {

using fabric::fake::Link;
using fabric::fake::LinkOptions;
using fabric::fake::Side;
using Lines = std::vector<std::string>;

// As long as a token has to be.
extern const char kToken[];

// `size` letters, others for another seed, without a short period.
std::string Letters(size_t size, uint32_t seed = 0);
// `text` in two pieces, in memory of its own.
memory::Payload ToPayload(absl::string_view text);
// Short ones as they are, long ones as their length and a hash.
std::string Brief(absl::string_view text);
// What StreamRecorder writes down for this message.
std::string MessageLine(absl::string_view text);

// A client's or a server's, with "shm" on offer.
Config ClientConfig();
Config ServerConfig();
// With the capabilities of a lifeline.
LinkOptions LifelineOptions();

// Writes down a stream's events: "headers h", "message m", "reset UNAVAILABLE:
// why, by the peer".
class StreamRecorder : public StreamEvents {
 public:
  void OnHeaders(absl::string_view metadata) override;
  void OnMessage(memory::Bytes message, bool compressed) override;
  void OnMessageTooLarge(uint64_t bytes) override;
  void OnHalfClose() override;
  void OnTrailers(absl::string_view metadata) override;
  void OnReset(const absl::Status& status, bool from_peer) override;
  void OnSendAccepted() override;

  // What has been written down since the last call.
  Lines Take();

  std::function<void()> on_event;
  // Messages are kept here rather than let go.
  bool keeps = false;
  std::vector<memory::Bytes> kept;

 private:
  void Add(std::string line);
  Lines lines_;
};

// One side: a session and its owner, who writes down: "opened 1", "path shm".
class Peer : public SessionEvents {
 public:
  Peer(const Config& config, std::unique_ptr<fabric::Endpoint> lifeline);

  void OnStreamOpened(uint32_t stream) override;
  void OnGoaway(uint32_t last_stream, const absl::Status& status) override;
  void OnPing() override;
  void OnPong(uint64_t cookie) override;
  absl::Status OnEntry(uint32_t number, absl::string_view entry) override;
  void OnConnectWanted(const std::string& fabric, const std::string& offer,
                       const std::string& token) override;
  void OnListenWanted() override;
  void OnPathChosen(const PathDescription& path) override;
  void OnClosed(const absl::Status& cause) override;

  Session* operator->() { return session_.get(); }
  // With it goes its end of the lifeline.
  void Destroy() { session_.reset(); }
  // As owners do before they unlock.
  void Flush();
  // Until nothing waits at the fast path: what a doorbell asks for.
  void PollAll();

  void Attach(uint32_t stream);
  // Attaches it, and sends headers "open".
  void Open(uint32_t stream);
  bool Send(uint32_t stream, absl::string_view message);
  StreamRecorder& stream(uint32_t id) { return streams_[id]; }
  // What has been written down since the last call.
  Lines Take();

  absl::Status entry_status;  // what OnEntry() returns
  bool attaches = true;       // streams that the peer opens, at once
  std::function<void()> on_event;

 private:
  void Add(std::string line);

  std::map<uint32_t, StreamRecorder> streams_;
  Lines lines_;
  // Last, for it calls the others.
  std::unique_ptr<Session> session_;
};

// A client (side A) and a server (side B). Nothing moves by itself.
class SessionTest : public ::testing::Test {
 protected:
  static constexpr Side kClient = Side::kA;
  static constexpr Side kServer = Side::kB;

  SessionTest();

  // The sessions are there and have sent their hellos.
  void Begin();
  // The hellos have arrived, and nothing is left to be taken.
  void Open();
  // And both have added a path, and send over it.
  void OpenWithPath();

  Peer& peer(Side side) { return side == kClient ? *client_ : *server_; }
  // A new fast link; its ends are still to be added.
  void NewLink();
  void AddPath(Side side, const std::string& fabric = "shm");
  // The newest fast link.
  Link& fast() { return *fast_links_.back(); }

  void FlushBoth();
  // One event of `link` for `to`, who flushes then. False: nothing waits.
  bool Step(Link* link, Side to);
  // All that waits there for `to`.
  void StepAll(Link* link, Side to);
  // Everything, everywhere.
  void Run();

  // To be changed before Begin() and NewLink().
  Config client_config_ = ClientConfig();
  Config server_config_ = ServerConfig();
  LinkOptions lifeline_options_ = LifelineOptions();
  LinkOptions fast_options_;

  std::unique_ptr<Link> lifeline_;
  std::vector<std::unique_ptr<Link>> fast_links_;
  std::unique_ptr<Peer> client_;
  std::unique_ptr<Peer> server_;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_SESSION_SESSION_TEST_UTIL_H_
