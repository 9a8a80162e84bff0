// Records the events of one end, and checks them against the contract.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_CONFORMANCE_RECORDER_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_CONFORMANCE_RECORDER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "transport/fabric/fabric.h"

namespace penstock {
namespace fabric {
namespace conformance {

// Records events, and fails the test for a violation: an event at a forbidden
// time or after OnBroken(), a read that ends twice or was never started, or an
// OnBroken() before the end of a read.
class Recorder : public EndpointEvents {
 public:
  void OnPacket(absl::Span<const uint8_t> packet) override {
    CheckTime();
    packets.emplace_back(reinterpret_cast<const char*>(packet.data()),
                         packet.size());
    if (on_packet) on_packet(packet);
  }
  void OnWritable() override {
    CheckTime();
    ++writable;
    if (on_writable) on_writable();
  }
  void OnReadDone(uint64_t cookie, const absl::Status& status) override {
    if (!within_read) CheckTime();
    EXPECT_EQ(under_way.erase(cookie), 1u)
        << "read " << cookie << " ended, but was not under way";
    reads[cookie] = status;
    if (on_read_done) on_read_done(cookie);
  }
  void OnDoorbell() override {
    CheckTime();
    ++doorbells;
  }
  void OnBroken(const absl::Status& cause) override {
    CheckTime();
    EXPECT_FALSE(cause.ok());
    EXPECT_TRUE(under_way.empty()) << under_way.size() << " reads under way";
    broken.push_back(cause);
  }

  // Returns true if the read has succeeded.
  bool Succeeded(uint64_t cookie) const {
    auto it = reads.find(cookie);
    return it != reads.end() && it->second.ok();
  }
  // Returns true if the read has failed.
  bool Failed(uint64_t cookie) const {
    auto it = reads.find(cookie);
    return it != reads.end() && !it->second.ok();
  }
  bool IsSilent() const {
    return packets.empty() && reads.empty() && broken.empty() &&
           writable == 0 && doorbells == 0;
  }

  std::vector<std::string> packets;
  std::map<uint64_t, absl::Status> reads;  // reads that have ended
  std::vector<absl::Status> broken;
  int writable = 0;
  int doorbells = 0;

  // The tests' hook, called after each event was recorded.
  std::function<void(absl::Span<const uint8_t>)> on_packet;
  std::function<void()> on_writable;
  std::function<void(uint64_t cookie)> on_read_done;

  // The cookies of the reads in progress, and true during a call of Read(). The
  // test sets both when it calls the endpoint.
  std::set<uint64_t> under_way;
  bool within_read = false;
  // The reason for forbidding events now; null if they are allowed.
  const char* forbidden = nullptr;

 private:
  void CheckTime() {
    if (forbidden != nullptr) ADD_FAILURE() << "an event " << forbidden;
    EXPECT_TRUE(broken.empty()) << "an event after OnBroken()";
  }
};

}  // namespace conformance
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_CONFORMANCE_RECORDER_H_
