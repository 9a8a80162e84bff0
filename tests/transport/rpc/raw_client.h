// A client that sends any bytes.

#ifndef PENSTOCK_TESTS_TRANSPORT_RPC_RAW_CLIENT_H_
#define PENSTOCK_TESTS_TRANSPORT_RPC_RAW_CLIENT_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/tcp/framing.h"
#include "transport/rpc/greeting.h"
#include "transport/wire/frame.h"
#include "transport/wire/hello.h"

namespace penstock {
namespace rpc {

constexpr char kToken[] = "a token";

// A connection that can send whole frames or any bytes. Reads only to detect
// the end of the stream.
class RawClient {
 public:
  explicit RawClient(int port)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_.get(), reinterpret_cast<sockaddr*>(&address),
                      sizeof address),
              0);
  }

  void Send(const std::string& bytes) {
    // Ignores errors, because the server may have closed the connection, as the
    // tests expect.
    (void)send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  void Greet() {
    Send(EncodeGreeting({wire::kOldestVersion, wire::kVersion, kToken}));
  }
  void SayHello(std::vector<wire::FabricOffer> offers = {}) {
    wire::Hello hello;
    hello.stream_window = 1 << 20;
    hello.offers = std::move(offers);
    const std::string payload = wire::EncodeHello(hello);
    SendFrame(wire::FrameType::kHello, 0, 0, payload);
  }
  void SendFrame(wire::FrameType type, uint32_t stream, uint8_t flags,
                 const std::string& payload) {
    wire::FrameHeader header;
    header.type = type;
    header.flags = flags;
    header.stream = stream;
    header.length = static_cast<uint32_t>(payload.size());
    header.sequence = wire::IsSequenced(type) ? next_++ : 0;
    std::string packet;
    wire::AppendFrame(header, payload, &packet);
    std::string unit;
    fabric::tcp::AppendUnitHeader({static_cast<uint32_t>(packet.size()),
                                   fabric::tcp::UnitType::kPacket, 0},
                                  &unit);
    Send(unit + packet);
  }
  // Reads to the end of the stream. Returns true if the end arrived before the
  // limit.
  bool IsDropped(absl::Duration limit = absl::Seconds(10)) {
    const absl::Time deadline = absl::Now() + limit;
    char buffer[4096];
    for (;;) {
      pollfd ready = {fd_.get(), POLLIN, 0};
      const int64_t left = absl::ToInt64Milliseconds(deadline - absl::Now());
      if (left <= 0 || poll(&ready, 1, static_cast<int>(left)) != 1) {
        return false;
      }
      if (recv(fd_.get(), buffer, sizeof buffer, 0) <= 0) return true;
    }
  }

 private:
  const base::UniqueFd fd_;
  uint64_t next_ = 1;
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_RPC_RAW_CLIENT_H_
