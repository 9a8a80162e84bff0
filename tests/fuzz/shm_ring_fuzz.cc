// Tests shm::RingReceiver and RingSender against a peer that writes arbitrary
// data to its control page and ring.
//
// The input is a sequence of steps, each a byte for the kind and its arguments.

#include <cstring>
#include <memory>
#include <new>

#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "transport/fabric/shm/control.h"
#include "transport/fabric/shm/ring.h"

namespace penstock {
namespace fuzz {
namespace {

using fabric::shm::ControlPage;
using fabric::shm::kRingOffset;
using fabric::shm::RingHeader;
using fabric::shm::RingReceiver;
using fabric::shm::RingSender;
using fabric::shm::RingShape;

constexpr uint32_t kRingBytes = 128 * 1024;

enum Step : uint8_t {
  kSetHead,    // u64
  kMoveHead,   // u32 to add
  kSetTail,    // u64
  kWriteRing,  // u32 place, u8 length, bytes
  kWriteHere,  // u32, the length in a header at this side's tail
  kWaits,
  kReceive,
  kSend,  // u16 bytes
  kSteps
};

// A page and its ring in separate memory, so that AddressSanitizer detects
// out-of-bounds accesses.
class Memory {
 public:
  Memory() : page_(new (bytes_->data) ControlPage()) {
    page_->ring_bytes = kRingBytes;
  }
  ControlPage* page() { return page_; }
  uint8_t* ring() { return bytes_->data + kRingOffset; }

 private:
  struct Bytes {
    alignas(64) uint8_t data[kRingOffset + kRingBytes] = {};
  };
  const std::unique_ptr<Bytes> bytes_ = std::make_unique<Bytes>();
  ControlPage* const page_;
};

class Victim {
 public:
  void Run(Input* input) {
    while (!input->empty()) Take(input);
  }

 private:
  void Take(Input* input) {
    ControlPage* peer = peer_.page();
    switch (input->Number<uint8_t>() % kSteps) {
      case kSetHead:
        peer->head = input->Number<uint64_t>();
        break;
      case kMoveHead:
        peer->head += input->Number<uint32_t>();
        break;
      case kSetTail:
        peer->tail = input->Number<uint64_t>();
        break;
      case kWriteRing:
        WriteRing(input->Number<uint32_t>(),
                  input->Bytes(input->Number<uint8_t>()));
        break;
      case kWriteHere:
        WriteHeader(input->Number<uint32_t>());
        break;
      case kWaits:
        peer->sender_waits = 1;
        break;
      case kReceive:
        Receive();
        break;
      case kSend:
        Send(input->Number<uint16_t>());
        break;
    }
  }

  void WriteHeader(uint32_t length) {
    const uint64_t tail = own_.page()->tail;
    const RingHeader header = fabric::shm::RingHeaderAt(tail, length);
    WriteRing(tail, AsBytes(Number(header.length) + Number(header.stamp)));
  }

  void WriteRing(uint64_t place, absl::Span<const uint8_t> bytes) {
    for (uint8_t byte : bytes) peer_.ring()[place++ % kRingBytes] = byte;
  }

  void Receive() {
    const bool had_input = receiver_.HasInput();
    const uint64_t tail = own_.page()->tail;
    absl::Span<const uint8_t> packet;
    const RingReceiver::Result got = receiver_.Receive(&packet);
    (void)receiver_.PeerWaits();
    uint64_t moved = own_.page()->tail - tail;
    if (!grown_ && moved > 0 && receiver_.has_grown()) {
      grown_ = true;
      const uint64_t gap = RingShape::GapAt(tail);
      Require(moved >= gap, "a ring grows at a multiple of its first part");
      moved -= gap;
    } else {
      Require((got == RingReceiver::Result::kEmpty) == !had_input,
              "HasInput says whether anything is there");
    }
    if (got != RingReceiver::Result::kPacket) {
      Require(moved == 0, "only a packet is taken");
      return;
    }
    Require(packet.size() <= fabric::shm::kMaxPacketBytes &&
                moved > packet.size() && moved <= packet.size() + 15 &&
                moved % 8 == 0,
            "a packet takes its bytes, a header and padding");
    SendOn(packet);
  }

  // Sends between two honest sides.
  void SendOn(absl::Span<const uint8_t> packet) {
    const std::string sent(AsText(packet));
    Require(honest_sender_.Send(packet) == RingSender::Result::kSent,
            "an empty ring takes a packet");
    absl::Span<const uint8_t> received;
    Require(
        honest_receiver_.Receive(&received) == RingReceiver::Result::kPacket &&
            AsText(received) == sent,
        "what is received, sent and received again is the same");
  }

  void Send(size_t size) {
    const uint64_t head = own_.page()->head;
    const std::string packet(size, 'm');
    const RingSender::Result result = sender_.Send(AsBytes(packet));
    const uint64_t moved = own_.page()->head - head;
    const bool grew = !own_grown_ && sender_.has_grown();
    own_grown_ = sender_.has_grown();
    Require((moved > 0) == (grew || result == RingSender::Result::kSent),
            "only what is sent is in the ring");
    if (sender_.RoomHasCome()) sender_.StopWaiting();
  }

  Memory own_, peer_, first_, second_;
  RingSender sender_{own_.page(), peer_.page()};
  RingReceiver receiver_{own_.page(), peer_.page(), kRingBytes};
  RingSender honest_sender_{first_.page(), second_.page()};
  RingReceiver honest_receiver_{second_.page(), first_.page(), kRingBytes};
  bool grown_ = false;      // the hostile side's ring
  bool own_grown_ = false;  // this side's ring
};

std::string StepOf(Step step, const std::string& rest = "") {
  return static_cast<char>(step) + rest;
}

}  // namespace

std::vector<std::string> Seeds() {
  const std::string packet = StepOf(kWriteHere, Number<uint32_t>(5)) +
                             StepOf(kMoveHead, Number<uint32_t>(16)) +
                             StepOf(kReceive);
  const std::string largest = StepOf(kWriteHere, Number<uint32_t>(65536)) +
                              StepOf(kMoveHead, Number<uint32_t>(65544)) +
                              StepOf(kReceive);
  const std::string grow =
      StepOf(kWriteHere, Number(fabric::shm::kGrown)) +
      StepOf(kMoveHead, Number<uint32_t>(fabric::shm::kFirstRingBytes)) +
      StepOf(kReceive);
  const std::string send = StepOf(kSend, Number<uint16_t>(60000));
  const std::string written =
      StepOf(kWriteRing, Number<uint32_t>(4) + "\5" + "hello");
  return {packet + packet + written,
          largest + grow + largest + largest + StepOf(kReceive),
          grow + packet + grow,
          send + send + send + StepOf(kSetTail, Number<uint64_t>(60008)) + send,
          packet + StepOf(kSetHead, Number<uint64_t>(0)) + StepOf(kReceive),
          StepOf(kSetTail, Number<uint64_t>(8)) + StepOf(kWaits) + send};
}

}  // namespace fuzz
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  penstock::fuzz::Input input(data, size);
  penstock::fuzz::Victim().Run(&input);
  return 0;
}
