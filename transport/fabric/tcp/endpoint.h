// An endpoint of packets, doorbells and one-sided reads over one byte stream.
//
// A read is a request that the peer's endpoint answers itself, below the
// session. The peer answers a few reads with each write, so that chunks of
// large messages interleave with packets.

#ifndef PENSTOCK_TRANSPORT_FABRIC_TCP_ENDPOINT_H_
#define PENSTOCK_TRANSPORT_FABRIC_TCP_ENDPOINT_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "transport/fabric/fabric.h"
#include "transport/fabric/tcp/byte_stream.h"
#include "transport/fabric/tcp/framing.h"
#include "transport/fabric/tcp/read_table.h"
#include "transport/fabric/tcp/unit_queue.h"

namespace penstock {
namespace fabric {
namespace tcp {

// The endpoint on a session's TCP connection, its lifeline. Calls its
// EndpointEvents only from OnBytes(), OnWritten(), Break() and Read(), so
// Poll() has nothing to do.
class Endpoint : public fabric::Endpoint {
 public:
  // Limits the reads of the peer that wait for their answers. Penstock's own
  // endpoints request far fewer.
  static constexpr size_t kMaxWaitingReads = 64 * 1024;

  // Refers to `stream`, which must outlive the endpoint. If more than
  // `max_waiting_reads` reads of the peer wait, the peer has broken the rules,
  // and the endpoint breaks.
  explicit Endpoint(ByteStream* stream,
                    size_t max_waiting_reads = kMaxWaitingReads);

  // The stream's owner calls the functions below, under the session's lock.
  //
  // Processes incoming bytes. Breaks the endpoint if they are not a sequence of
  // units.
  void OnBytes(absl::Span<const uint8_t> bytes);
  // Returns the memory into which the owner should receive the next bytes, if
  // these bytes belong to a read. Otherwise returns an empty span. Valid until
  // the next call.
  absl::Span<uint8_t> place();
  // Processes bytes that the owner has received into the beginning of place().
  // Makes no copy.
  void OnPlaced(size_t size);
  // Ends the write in flight, and starts the next one if anything waits.
  void OnWritten();
  // Writes everything that is queued, unless a write or a batch is in progress.
  // With `may_wait`, the stream may also hold the write back.
  void WriteQueued(bool may_wait = true);
  // Ends the reads in flight with `cause`, then breaks the endpoint. The owner
  // calls this function when the stream has ended.
  void Break(const absl::Status& cause);

  // Returns true if a read of this side waits for bytes.
  bool reading() const { return !reads_.empty(); }
  // Returns true if everything sent has been written to the stream.
  bool idle() const { return !writing_ && !HasOutput(); }

  const Capabilities& capabilities() const override { return capabilities_; }
  std::string Describe() const override { return std::string(); }
  void Start(EndpointEvents* events) override { events_ = events; }
  bool Send(absl::Span<const uint8_t> packet) override;
  bool SendOwned(std::string* packet) override;
  void BeginBatch() override { ++batches_; }
  void EndBatch() override;
  absl::StatusOr<Exposure> Expose(const memory::Payload& payload,
                                  size_t max_parts) override;
  absl::StatusOr<Exposure> ExposeToPush(
      const memory::Payload& payload) override;
  void Push(const RemoteRegion& region) override;
  void Withdraw(const RemoteRegion& region) override;
  std::shared_ptr<const void> PrepareToRead(
      const memory::Destination& into) override {
    return HostMemoryAsItIs(into);
  }
  void Read(const RemotePart& part, uint64_t offset, absl::Span<uint8_t> into,
            uint64_t cookie) override;
  bool Divert(uint64_t cookie) override {
    reads_.Divert(cookie);
    return true;
  }
  bool Poll() override { return false; }
  bool HasInput() const override { return false; }
  void SetArmed(bool) override {}
  bool TakeDoorbellRequest() override { return false; }
  void RingDoorbell() override;

 private:
  struct ServedRead {
    uint64_t cookie;  // the peer's
    ReadRequest request;
  };

  bool HasOutput() const {
    return !queue_.empty() || !to_serve_.empty() || !to_push_.empty();
  }

  // The functions below consume bytes from the beginning of `bytes`, and return
  // the number of consumed bytes.
  size_t TakeHeader(absl::Span<const uint8_t> bytes);
  size_t TakeBody(absl::Span<const uint8_t> bytes);
  size_t TakeReadData(absl::Span<const uint8_t> bytes);
  // Counts received bytes of the incoming unit's read. Ends the read after the
  // last byte.
  void CountReadData(size_t size);
  void OnUnit(absl::Span<const uint8_t> body);
  void AcceptRead(uint64_t cookie, const ReadRequest& request);
  void ServeReads();
  void ServePushes();
  // Adds a unit's header, and then bytes of an exposed message. Returns false,
  // and adds nothing, if the bytes cannot be read.
  bool AddPart(const UnitHeader& header, const memory::Payload& payload,
               size_t offset);
  Exposure Keep(uint64_t key, const memory::Payload& payload);
  // Ends the read that waits for the incoming unit. Breaks the endpoint if the
  // unit is an answer for which no read waits. Drops a push for which no read
  // waits.
  void FinishRead(const absl::Status& status);

  ByteStream* const stream_;
  const size_t max_waiting_reads_;
  EndpointEvents* events_ = nullptr;
  const Capabilities capabilities_;
  bool broken_ = false;

  UnitQueue queue_;  // waits for the write in flight
  bool writing_ = false;
  int batches_ = 0;  // begun and not ended
  bool doorbell_queued_ = false;

  // The state of the incoming unit.
  std::string header_bytes_;
  bool in_body_ = false;
  UnitHeader unit_;
  std::string body_;
  size_t body_received_ = 0;
  uint64_t packets_ = 0;  // received

  uint64_t next_key_ = 1;
  std::unordered_map<uint64_t, memory::Payload> exposed_;
  std::deque<ServedRead> to_serve_;
  std::deque<uint64_t> to_push_;  // keys
  ReadTable reads_;
};

}  // namespace tcp
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_TCP_ENDPOINT_H_
