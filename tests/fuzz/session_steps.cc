#include "tests/fuzz/session_steps.h"

#include "tests/fuzz/input.h"
#include "transport/wire/announce.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace fuzz {
namespace {

using wire::FrameType;

constexpr uint8_t kServer = kSaysHello | kHasPath | kCanLoad;
constexpr uint8_t kClient = kServer | kIsClient;

std::string Byte(uint8_t value) { return Number(value); }

std::string FrameStep(uint8_t path, FrameType type, uint8_t stream,
                      const std::string& payload = "", uint16_t aux = 0) {
  return Byte(kFrame) + Byte(path) + Byte(static_cast<uint8_t>(type)) +
         Byte(0) + Byte(stream) + Number(aux) +
         Byte(static_cast<uint8_t>(payload.size())) + payload;
}

std::string OfApp(Step step, uint8_t stream) {
  return Byte(step) + Byte(stream);
}

std::string Announced(uint8_t regions, uint16_t length) {
  return Byte(kAnnounced) + Byte(regions) + Byte(1) + Number(length);
}

std::string Long(FrameType type, uint16_t length) {
  return Byte(kLong) + Byte(0) + Byte(static_cast<uint8_t>(type)) + Byte(0) +
         Byte(1) + Number(length);
}

std::string SendStep(uint8_t stream, uint16_t bytes) {
  return OfApp(kSendMessage, stream) + Number(bytes);
}

std::string Unreadable() {
  wire::Announce announce;
  announce.id = 100;
  announce.length = 5000;
  announce.regions = {{1, {{99, 0, 4000}, {98, 7, 1000}}},
                      {0, {{99, 0, 5000}}}};
  return wire::EncodeAnnounce(announce, wire::kVersion);
}

std::string TooLarge() {
  wire::Announce announce;
  announce.id = 100;
  announce.length = wire::kMaxMessageBytes;
  announce.regions = {{0, {{1, 0, announce.length}}}};
  return wire::EncodeAnnounce(announce, wire::kVersion);
}

// Returns the steps of a call at a server, with the peer's frames on `path`.
std::string ServedCall(uint8_t path) {
  return FrameStep(path, FrameType::kHeaders, 1, "open") + Byte(kDeliverAll) +
         OfApp(kAttach, 1) + FrameStep(path, FrameType::kMessage, 1, "hello") +
         FrameStep(path, FrameType::kHalfClose, 1) + OfApp(kWant, 1) +
         Byte(kDeliverAll) + OfApp(kConsume, 1) + OfApp(kSendHeaders, 1) +
         SendStep(1, 100) + SendStep(1, 5000) +
         FrameStep(path, FrameType::kCredit, 1, "", 5000) +
         FrameStep(0, FrameType::kRelease, 0, Number<uint64_t>(1)) +
         OfApp(kSendTrailers, 1) + Byte(kDeliverAll);
}

std::string MadeCall() {
  return OfApp(kAttach, 1) + OfApp(kSendHeaders, 1) + SendStep(1, 60000) +
         SendStep(1, 10) + OfApp(kSendHalfClose, 1) + Byte(kDeliverAll) +
         FrameStep(1, FrameType::kHeaders, 1, "initial") +
         FrameStep(1, FrameType::kMessage, 1, "reply") + Announced(3, 9000) +
         FrameStep(1, FrameType::kTrailers, 1, "trailers") + Byte(kDeliverAll) +
         OfApp(kConsume, 1) + OfApp(kConsume, 1);
}

std::string LostPath() {
  return FrameStep(1, FrameType::kHeaders, 1, "open") + Byte(kDeliverAll) +
         OfApp(kAttach, 1) + Announced(3 + 5 * kPart, 60000) + Byte(kDeliver) +
         Byte(2) + SendStep(1, 3000) + Byte(kDropPath) + Byte(kDeliverAll) +
         FrameStep(0, FrameType::kPathLost, 0, "why", 1) + Byte(kDeliverAll) +
         FrameStep(0, FrameType::kPathWanted, 0, "", 2) + Byte(kDeliverAll) +
         FrameStep(0, FrameType::kPathReady, 0, "shm", 2);
}

std::string Ends() {
  return FrameStep(0, FrameType::kPing, 0, Number<uint64_t>(1)) +
         FrameStep(0, FrameType::kGoaway, 0, "bye", 14) +
         FrameStep(0, FrameType::kReset, 1, "why", 1) + Byte(kDeliverAll) +
         OfApp(kSessionCall, 0) + OfApp(kSessionCall, 1) + Byte(kDropLifeline);
}

std::string Attached() {
  return FrameStep(0, FrameType::kHeaders, 1, "open") + Byte(kDeliverAll) +
         OfApp(kAttach, 1);
}

}  // namespace

std::vector<std::string> SessionSeeds() {
  return {
      Byte(kServer) + ServedCall(0),
      Byte(kServer) + ServedCall(1),
      Byte(kClient) + MadeCall(),
      Byte(kClient & ~kCanLoad) + MadeCall() + Ends(),
      Byte(kServer) + LostPath(),
      Byte(kServer) + ServedCall(1) + Ends(),
      Byte(kServer) + Attached() + Long(FrameType::kMessage, 40000) +
          Long(FrameType::kTrailers, 20000) + OfApp(kDetach, 1),
      Byte(kServer) + Attached() + Announced(1, 9000) +
          Announced(2 + 2 * kPart, 9000) +
          FrameStep(0, FrameType::kAnnounce, 1, Unreadable()) + Byte(kDeliver) +
          Byte(3) + OfApp(kSendReset, 1) + OfApp(kDetach, 1),
      Byte(kServer) + Attached() +
          FrameStep(0, FrameType::kAnnounce, 1, TooLarge()) +
          Byte(kDeliverAll) + OfApp(kConsume, 1) + Byte(kDeliverAll),
      Byte(kServer | kIsRpc) + Attached() +
          FrameStep(0, FrameType::kAnnounce, 1, TooLarge()) + Byte(kDeliverAll),
      Byte(kServer | kIsRpc) + ServedCall(1),
      Byte(0) + Byte(kHello) + Byte(kAddPath) + Byte(kDeliverAll),
      Byte(kIsClient) + Byte(kDeliverAll) + Byte(kHello) + Byte(kDeliverAll) +
          FrameStep(0, FrameType::kPathOffered, 0, "0123456789abcdef", 1),
  };
}

}  // namespace fuzz
}  // namespace penstock
