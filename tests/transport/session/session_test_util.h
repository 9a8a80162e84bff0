// Two sessions over fake links. Their owners record the events.

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
#include "transport/wire/announce.h"

namespace penstock {
namespace session {

using fabric::fake::Link;
using fabric::fake::LinkOptions;
using fabric::fake::Side;
using Lines = std::vector<std::string>;

// A token of the right length.
extern const char kToken[];

// Returns `size` letters that do not repeat at a short distance. Different
// seeds give different letters.
std::string Letters(size_t size, uint32_t seed = 0);
// Returns `text` in two pieces, in separate memory.
memory::Payload ToPayload(absl::string_view text);
// Returns the bytes of all pieces.
std::string ToString(const memory::Payload& payload);
// Returns `payload` with copies of the pieces that have no owner.
memory::Payload Owned(const memory::Payload& payload);
// Returns the announcement of `region`.
wire::AnnouncedRegion Announced(uint32_t path,
                                const fabric::RemoteRegion& region);
// Returns a short text unchanged, and a long text as length and hash.
std::string Brief(absl::string_view text);
// Returns StreamRecorder's line for this message.
std::string MessageLine(absl::string_view text);

// Return a client's and a server's configuration that offers "shm".
Config ClientConfig();
Config ServerConfig();
// Returns options with a lifeline's capabilities.
LinkOptions LifelineOptions();

// Records a stream's events: "headers h", "message m", "reset UNAVAILABLE: why,
// by the peer".
class StreamRecorder : public StreamEvents {
 public:
  void OnHeaders(absl::string_view metadata) override;
  void OnMessage(const memory::Payload& message, bool compressed) override;
  void OnMessageTooLarge(uint64_t bytes) override;
  void OnHalfClose() override;
  void OnTrailers(absl::string_view metadata) override;
  void OnReset(const absl::Status& status, bool from_peer) override;
  void OnSendAccepted() override;

  // Returns the lines since the last call.
  Lines Take();

  std::function<void()> on_event;
  // If true, keeps messages in `kept` instead of dropping them.
  bool keeps = false;
  std::vector<memory::Payload> kept;

 private:
  void Add(std::string line);
  Lines lines_;
};

// One side: a session and its owner. The owner records "opened 1", "path shm"
// and so on.
class Peer : public SessionEvents, public PathEvents {
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
  // Destroys the session, and with it its end of the lifeline.
  void Destroy() { session_.reset(); }
  // Flushes, as an owner does before it unlocks.
  void Flush();
  // Polls the fast path until it has no input, as after a doorbell.
  void PollAll();

  void Attach(uint32_t stream);
  // Attaches the stream, and sends headers "open".
  void Open(uint32_t stream);
  bool Send(uint32_t stream, absl::string_view message);
  StreamRecorder& stream(uint32_t id) { return streams_[id]; }
  // Returns the lines since the last call.
  Lines Take();

  absl::Status entry_status;  // the result of OnEntry()
  bool attaches = true;       // attaches the peer's streams immediately
  std::function<void()> on_event;

 private:
  void Add(std::string line);

  std::map<uint32_t, StreamRecorder> streams_;
  Lines lines_;
  // The session. Declared last, because its destructor calls the other members.
  std::unique_ptr<Session> session_;
};

// A fixture with a client (side A) and a server (side B). Data moves only when
// the test moves it.
class SessionTest : public ::testing::Test {
 protected:
  static constexpr Side kClient = Side::kA;
  static constexpr Side kServer = Side::kB;

  SessionTest();

  // Makes the sessions, which send their hellos.
  void Begin();
  // Makes the sessions, and delivers the hellos and all later packets.
  void Open();
  // Makes the sessions, and adds a path that both use.
  void OpenWithPath();

  Peer& peer(Side side) { return side == kClient ? *client_ : *server_; }
  // Makes a new fast link, without adding the ends.
  void NewLink();
  void AddPath(Side side, const std::string& fabric = "shm");
  // Returns the newest fast link.
  Link& fast() { return *fast_links_.back(); }

  void FlushBoth();
  // Delivers one event of `link` to `to`, which then flushes. Returns false if
  // there is none.
  bool Step(Link* link, Side to);
  // Delivers all waiting events of `link` to `to`.
  void StepAll(Link* link, Side to);
  // Delivers all events on all links.
  void Run();

  // The configurations. Change these before Begin() and NewLink().
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
