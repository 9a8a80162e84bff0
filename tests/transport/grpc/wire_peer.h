// A peer that speaks Penstock's bytes explicitly, over its own socket. The peer
// can send bytes that no real peer sends, and sees each frame.

#ifndef PENSTOCK_TESTS_TRANSPORT_GRPC_WIRE_PEER_H_
#define PENSTOCK_TESTS_TRANSPORT_GRPC_WIRE_PEER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace core {

// Returns the example bytes of docs/protocol.md, section "Metadata".
std::string Metadata(
    const std::vector<std::pair<std::string, std::string>>& pairs);

// A peer that offers no fabric, so all traffic uses its connection. The
// functions block, and must be called on one thread. A peer that is silent for
// 25 seconds counts as gone.
class WirePeer {
 public:
  // Takes ownership of the socket.
  explicit WirePeer(int socket) : socket_(socket) {}
  ~WirePeer();
  WirePeer(const WirePeer&) = delete;
  WirePeer& operator=(const WirePeer&) = delete;

  // Negotiates: Connect() as a client, Serve() as a server. Each sends a hello.
  // RPCs are possible afterwards.
  static std::unique_ptr<WirePeer> Connect(int port);
  bool Serve(uint32_t max_streams = UINT32_MAX);

  // Sends a sequenced frame.
  void Send(wire::FrameType type, uint32_t stream, uint32_t aux = 0,
            absl::string_view payload = absl::string_view());
  // Opens a stream, as a client does. The call has no message yet.
  void OpenCall(uint32_t stream);
  // Sends a unit of the tcp fabric without a message.
  void SendUnit(uint8_t type, uint64_t cookie,
                absl::string_view body = absl::string_view());
  struct Received {
    wire::FrameHeader header;
    std::string payload;
  };
  // Receives the next sequenced frame. Returns false if the peer has gone.
  bool Receive(Received* frame);
  // Receives the next frame. Returns the frame as text: "goaway 4294967295",
  // "ping", "closed".
  std::string Next();
  // Answers the ping that Next() received last.
  void Pong() { Send(wire::FrameType::kPong, 0, 0, ping_); }

 private:
  bool ReadExactly(size_t size, std::string* bytes);
  void Write(absl::string_view bytes);
  void SendMessage(absl::string_view frames);
  void SayHello(uint32_t max_streams, const std::string& token);

  const int socket_;
  uint64_t sent_ = 0;
  uint64_t received_ = 0;
  std::string waiting_;  // frames of a message that was already read
  std::string ping_;
};

// A port to which clients of a WirePeer connect.
class WireListener {
 public:
  WireListener();
  ~WireListener();
  int port() const { return port_; }
  // Accepts a client. Returns null after 25 seconds.
  std::unique_ptr<WirePeer> Accept();

 private:
  int socket_;
  int port_ = 0;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_GRPC_WIRE_PEER_H_
