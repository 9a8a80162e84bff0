// Two ends of shared memory in one process, and waits with a deadline.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_SHM_TEST_UTIL_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_SHM_TEST_UTIL_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/shm/fabric.h"
#include "transport/fabric/shm/segment.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace shm {

constexpr absl::Duration kTestDeadline = absl::Seconds(20);

// Calls `condition` until it is true. Returns false after the deadline.
bool WaitUntil(const std::function<bool()>& condition);

// Waits for the result of a Listen() or a Connect().
class Outcome {
 public:
  Outcome() : state_(std::make_shared<State>()) {}

  ConnectCallback callback() const;
  // Waits for the result.
  absl::StatusOr<std::unique_ptr<Endpoint>> Take();
  bool finished() const;

 private:
  // The state of the notification. absl::Notification is unsuitable, because
  // ThreadSanitizer does not see its locks.
  struct State {
    std::mutex mu;
    std::condition_variable changed;
    bool done = false;
    absl::StatusOr<std::unique_ptr<Endpoint>> result;
  };
  std::shared_ptr<State> state_;
};

// Records all events.
class Recorder : public EndpointEvents {
 public:
  void OnPacket(absl::Span<const uint8_t> packet) override {
    packets.emplace_back(packet.begin(), packet.end());
    if (on_packet) on_packet();
  }
  void OnWritable() override { ++writable; }
  void OnReadDone(uint64_t cookie, const absl::Status& status) override {
    reads[cookie] = status;
  }
  void OnDoorbell() override {}
  void OnBroken(const absl::Status& cause) override { broken.push_back(cause); }

  std::function<void()> on_packet;
  std::vector<std::string> packets;
  std::map<uint64_t, absl::Status> reads;
  std::vector<absl::Status> broken;
  int writable = 0;
};

struct End {
  Recorder events;
  std::unique_ptr<Endpoint> endpoint;
};

struct Pair {
  End listening;
  End connecting;
};

// Makes two started ends, between two fabrics or within one. On failure, fails
// the test and returns null.
std::unique_ptr<Pair> MakePair(ShmFabric* listening, ShmFabric* connecting);

std::string NewTestToken();
absl::Span<const uint8_t> AsBytes(absl::string_view text);
bool Send(Endpoint* endpoint, absl::string_view text);
// Returns bytes of a pattern that depends on `seed`.
memory::Payload PatternPayload(size_t size, uint8_t seed);
bool HasPattern(absl::Span<const uint8_t> bytes, uint8_t seed);

// Counts the open descriptors of this process.
size_t CountFds();
// Makes a raw connection to the socket in `offer`.
base::UniqueFd RawConnect(const std::string& offer,
                          const std::string& directory = "");
// A started end whose peer is the test. The peer uses `socket` for everything
// outside the ring. The peer's control page announces `features`.
struct RawPair {
  absl::optional<Segment> control;
  base::UniqueFd socket;
  End end;
};
std::unique_ptr<RawPair> MakeRawPair(ShmFabric* listening,
                                     uint32_t features = 0);
// Waits for the doorbell of one end, as the end's owner does.
class SleepingEnd {
 public:
  // Watches the doorbell of `end`. `end` must outlive this object.
  explicit SleepingEnd(Endpoint* end);
  // Returns true if the doorbell has rung since the last call.
  bool TakeRing();

 private:
  const base::UniqueFd epoll_;
};
// Returns true if the other side has closed the connection.
bool IsHungUp(const base::UniqueFd& socket);

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_SHM_TEST_UTIL_H_
