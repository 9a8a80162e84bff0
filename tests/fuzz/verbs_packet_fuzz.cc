// Tests verbs::ParseHeader.

#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "transport/fabric/verbs/formats/packet.h"

namespace penstock {
namespace fuzz {
namespace {

std::string Encoded(const fabric::verbs::PacketHeader& header) {
  std::string bytes(fabric::verbs::kPacketHeaderBytes, '\0');
  fabric::verbs::EncodeHeader(header, reinterpret_cast<uint8_t*>(&bytes[0]));
  return bytes;
}

}  // namespace

std::vector<std::string> Seeds() {
  fabric::verbs::PacketHeader packet;
  packet.credits = 3;
  fabric::verbs::PacketHeader credits;
  credits.kind = fabric::verbs::PacketHeader::Kind::kCredits;
  credits.credits = 0xffff;
  return {Encoded(packet) + "a frame", Encoded(credits)};
}

}  // namespace fuzz
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  using fabric::verbs::kPacketHeaderBytes;
  const auto header = fabric::verbs::ParseHeader({data, size});
  if (!header.ok()) return 0;
  fuzz::Require(size >= kPacketHeaderBytes, "a packet has its header");
  fuzz::Require(
      fuzz::Encoded(*header) == fuzz::AsText({data, kPacketHeaderBytes}),
      "a header is encoded to the very bytes that it came from");
  fuzz::Require(header->kind == fabric::verbs::PacketHeader::Kind::kPacket ||
                    size == kPacketHeaderBytes,
                "nothing follows what only grants credits");
  return 0;
}
