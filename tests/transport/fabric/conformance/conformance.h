// The fixture of the suite: a connected pair, a recorder at each end, and
// checked calls of an endpoint.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_CONFORMANCE_CONFORMANCE_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_CONFORMANCE_CONFORMANCE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/conformance/bytes_util.h"
#include "tests/transport/fabric/conformance/harness.h"
#include "tests/transport/fabric/conformance/recorder.h"
#include "transport/fabric/fabric.h"

namespace penstock {
namespace fabric {
namespace conformance {

class Conformance : public ::testing::TestWithParam<FabricCase> {
 protected:
  void SetUp() override { Connect(); }
  void TearDown() override { Disconnect(); }

  // Replaces the pair of endpoints.
  void Connect();
  // Destroys both ends, and all operations in progress.
  void Disconnect();

  Endpoint* end(Side side) const { return harness_->end(side); }
  Endpoint* a() const { return end(Side::kA); }
  Endpoint* b() const { return end(Side::kB); }
  Recorder& at(Side side) { return *recorders_[static_cast<int>(side)]; }
  Recorder& at_a() { return at(Side::kA); }
  Recorder& at_b() { return at(Side::kB); }
  const Capabilities& capabilities() const { return capabilities_; }
  size_t max_packet() const { return capabilities_.max_packet_bytes; }
  // Returns the size of a region that needs several chunks. The last chunk is
  // shorter.
  size_t several_chunks() const;

  // Sends a packet. No event may come within the call, at either end.
  bool Send(Side from, absl::string_view packet);
  // Sends a packet once there is credit. Pumps until then.
  void SendSurely(Side from, absl::string_view packet);
  // Sends full packets until one is refused. Returns the number of accepted
  // packets.
  int SendUntilRefused(Side from);
  void Read(Side reader, const RemotePart& part, uint64_t offset,
            absl::Span<uint8_t> into, uint64_t cookie);
  // Exposes the payload. Fails the test if there is no room, or if the parts of
  // the exposure are wrong.
  Exposure Expose(Side owner, const memory::Payload& payload,
                  size_t max_parts = 1);
  // Exposes the bytes at side A, in one part.
  RemotePart ExposePart(absl::string_view bytes);
  // Reads the whole region like the session: chunk by chunk, with as many reads
  // in parallel as the fabric prefers.
  absl::StatusOr<std::string> ReadWhole(Side reader,
                                        const RemoteRegion& region);
  // Withdraws an exposure that was read and not loaded, as both sessions do.
  void Release(Side owner, const RemoteRegion& region);
  // Expects that packets and regions can pass in both directions.
  void ExpectAlive();
  void Pump() { harness_->Pump(); }
  void Kill(Side side);

  std::unique_ptr<Recorder> recorders_[2];
  std::unique_ptr<Harness> harness_;

 private:
  // Forbids events until AllowEvents().
  void ForbidEvents(const char* why);
  void AllowEvents();
  void ReadChunks(Side reader, const RemoteRegion& region, Target* target);

  Capabilities capabilities_;  // a copy, because an end may die
};

}  // namespace conformance
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_CONFORMANCE_CONFORMANCE_H_
