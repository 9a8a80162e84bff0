// Two connected ends of the verbs fabric over simulated devices, and the events
// at each.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_ENDS_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_ENDS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/fake/fake_verbs.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/verbs/fabric.h"
#include "transport/fabric/verbs/options.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace verbs {

constexpr char kTestToken[] = "a token of sixteen bytes or more";

// Records all events. An event after the end fails the test.
class Recorder : public EndpointEvents {
 public:
  void OnPacket(absl::Span<const uint8_t> packet) override {
    CheckAlive();
    packets.emplace_back(packet.begin(), packet.end());
  }
  void OnWritable() override {
    CheckAlive();
    ++writable;
  }
  void OnReadDone(uint64_t cookie, const absl::Status& status) override {
    // Allows an event within Read(): a dead endpoint answers immediately.
    if (!within_read) CheckAlive();
    EXPECT_TRUE(reads.emplace(cookie, status).second) << "ended twice";
    if (on_read_done) on_read_done(cookie);
  }
  void OnDoorbell() override { CheckAlive(); }
  void OnBroken(const absl::Status& cause) override {
    CheckAlive();
    broken.push_back(cause);
  }
  bool Succeeded(uint64_t cookie) const {
    return reads.count(cookie) > 0 && reads.at(cookie).ok();
  }
  bool Failed(uint64_t cookie) const {
    return reads.count(cookie) > 0 && !reads.at(cookie).ok();
  }

  std::vector<std::string> packets;
  std::map<uint64_t, absl::Status> reads;
  std::vector<absl::Status> broken;
  int writable = 0;
  bool within_read = false;
  std::function<void(uint64_t cookie)> on_read_done;

 private:
  void CheckAlive() const {
    EXPECT_TRUE(broken.empty()) << "an event after OnBroken()";
  }
};

struct End {
  Recorder events;
  std::unique_ptr<Endpoint> endpoint;
  Endpoint* operator->() const { return endpoint.get(); }
};

// The devices "client" at 10.0.0.1 and "server" at 10.0.0.2, with a fabric
// each.
class Ends {
 public:
  explicit Ends(DeviceOptions device = {}, Options options = {},
                NetworkOptions network = {});
  // Fails the test if anything is still alive or was misused, unless Forgive()
  // was called.
  ~Ends();
  void Forgive() { forgiven_ = true; }

  // Makes and starts a new connection.
  absl::Status Connect();
  // Polls both ends until nothing happens.
  void Exchange();
  // Polls both ends until `condition` is true. Returns false after some
  // seconds.
  bool ExchangeUntil(const std::function<bool()>& condition);
  // Destroys both ends, and waits until the event loop has done its part.
  void Close();
  // Counts living connections, excluding those that each fabric keeps
  // permanently.
  int CountOfConnections();

  static bool Send(const End& end, absl::string_view text);
  static memory::Payload PayloadOf(const std::string& text);
  // Read all bytes at `end`. Return an empty string on failure.
  std::string ReadAll(End* end, const RemoteRegion& region);
  std::string ReadPart(End* end, const RemotePart& part);

  // Never destroyed, because parts of closed connections may still use the
  // network.
  FakeVerbs* const api;
  std::unique_ptr<VerbsFabric> listening;
  std::unique_ptr<VerbsFabric> connecting;
  End server;
  End client;

 private:
  uint64_t next_cookie_ = 1000;
  bool forgiven_ = false;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_ENDS_H_
