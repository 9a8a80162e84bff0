// Tests the meeting of the two ends of a connection (current gRPC): everything
// that a server and a client read at the UNIX socket of a listener.
//
// The first byte chooses the side that is attacked. The rest is a list of the
// steps of a liar, a process of the same user. The liar connects to the
// server's socket, or listens in place of the server. A false message must cost
// at most the path of the connection that the message names.

#include <unistd.h>

#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/liar_socket.h"
#include "tests/fuzz/target.h"
#include "transport/event_engine/meeting/call.h"
#include "transport/event_engine/meeting/place.h"
#include "transport/fabric/shm/address.h"
#include "transport/fabric/shm/setup_message.h"

namespace penstock {
namespace fuzz {
namespace {

using event_engine::MeetingCall;
using event_engine::MeetingPlace;
using event_engine::TcpAddress;
using fabric::shm::SetupMessage;

enum Victim : uint8_t { kServer, kClient, kVictims };

enum Step : uint8_t {
  kOpen,     // connects to the server, or accepts the client's connection
  kMessage,  // u8 socket, u8 kind, size, u8 token, u8 copies, u8 descriptor
  kRaw,      // u8 socket, u8 length, bytes, u8 descriptor
  kHangUp,   // u8 socket
  kSteps
};

enum Token : uint8_t { kRight, kOfNobody, kEmpty, kLongest, kTokens };

// The maximum number of sockets of one liar. A server admits 64 connections in
// set-up.
constexpr size_t kMostSockets = 6;

// The timeout of an answer that must come.
constexpr absl::Duration kMostWait = absl::Minutes(2);

// Returns an address that neither other processes nor earlier runs have used.
TcpAddress NextAddress() {
  static uint32_t next = 0;
  TcpAddress address;
  address.ip = {0xfd};
  const pid_t pid = getpid();
  ++next;
  for (int i = 0; i < 4; ++i) {
    address.ip[4 + i] = static_cast<uint8_t>(pid >> (8 * i));
    address.ip[8 + i] = static_cast<uint8_t>(next >> (8 * i));
  }
  address.port = 1;
  return address;
}

fabric::shm::Options OptionsOf() {
  fabric::shm::Options options;
  options.other_users = false;
  // Long enough for a pause of the whole machine.
  options.setup_timeout = absl::Minutes(5);
  return options;
}

// The result of an attempt. Shared with a callback that may run late.
struct Result {
  absl::Notification done;
  bool ok = false;

  bool Waits() {
    Require(done.WaitForNotificationWithTimeout(kMostWait),
            "an attempt ends in bounded time");
    return ok;
  }
};

fabric::ConnectCallback Into(const std::shared_ptr<Result>& result) {
  return [result](absl::StatusOr<std::unique_ptr<fabric::Endpoint>> endpoint) {
    Require(!result->done.HasBeenNotified(), "an attempt ends once");
    result->ok = endpoint.ok();
    result->done.Notify();
  };
}

// Sends the messages that its steps say. Remembers which effects the messages
// may have.
class Liar {
 public:
  // `victim` is a listening socket at which a client calls, or invalid.
  Liar(fabric::shm::SocketAddress address, base::UniqueFd listening,
       std::string token)
      : address_(std::move(address)),
        listening_(std::move(listening)),
        token_(std::move(token)) {}

  void Run(Input* input) {
    while (!input->empty()) Take(input);
  }

  // True if the liar has sent the token of the attacked connection.
  bool has_named() const { return has_named_; }
  // True if the liar has sent a welcome with memory.
  bool has_welcomed() const { return has_welcomed_; }

 private:
  void Take(Input* input) {
    const auto step = input->Number<uint8_t>() % kSteps;
    if (step == kOpen) return Open();
    const size_t at = input->Number<uint8_t>() % kMostSockets;
    if (step == kHangUp && at < sockets_.size()) sockets_[at].Reset();
    if (step == kMessage) SendMessage(at, input);
    if (step != kRaw) return;
    const auto bytes = AsText(input->Bytes(input->Number<uint8_t>()));
    Send(at, std::string(bytes), LiarSocket::AnyMemory(input));
  }

  void Open() {
    if (sockets_.size() == kMostSockets) return;
    LiarSocket socket = listening_.valid() ? LiarSocket::Accept(listening_)
                                           : LiarSocket::Connect(address_);
    if (socket.valid()) sockets_.push_back(std::move(socket));
  }

  void SendMessage(size_t at, Input* input) {
    SetupMessage message;
    message.kind =
        static_cast<SetupMessage::Kind>(1 + input->Number<uint8_t>() % 8);
    message.size = TakeSize(input);
    message.token = TokenOf(input->Number<uint8_t>() % kTokens);
    message.copies = input->Number<uint8_t>() % 2 == 1;
    Send(at, EncodeSetup(message), LiarSocket::AnyMemory(input));
  }

  // Returns a size at a limit of the code, or any size.
  static uint64_t TakeSize(Input* input) {
    const uint64_t sizes[] = {
        LiarSocket::kRingBytes, 0, 4096, 1, fabric::shm::kMaxPeerBytes,
        uint64_t{1} << 63};
    const size_t choice = input->Number<uint8_t>() % (std::size(sizes) + 1);
    return choice < std::size(sizes) ? sizes[choice] : input->AnyNumber();
  }

  std::string TokenOf(int choice) const {
    if (choice == kRight) return token_;
    if (choice == kEmpty) return "";
    if (choice == kLongest) {
      return std::string(fabric::shm::kMaxTokenBytes, 't');
    }
    std::string other = token_;
    other.back() ^= 1;
    return other;
  }

  void Send(size_t at, const std::string& bytes, int descriptor) {
    if (at >= sockets_.size()) return;
    has_named_ |= bytes.find(token_) != std::string::npos;
    const auto message = fabric::shm::DecodeSetup(bytes);
    has_welcomed_ |= message.ok() &&
                     message->kind == SetupMessage::Kind::kWelcome &&
                     descriptor >= 0;
    sockets_[at].Send(bytes, descriptor);
  }

  const fabric::shm::SocketAddress address_;
  const base::UniqueFd listening_;
  const std::string token_;
  std::vector<LiarSocket> sockets_;
  bool has_named_ = false;
  bool has_welcomed_ = false;
};

// A server that is never destroyed.
struct Server {
  TcpAddress address = NextAddress();
  std::unique_ptr<MeetingPlace> place =
      MeetingPlace::Open(address, OptionsOf()).value();
};

// Requires that an honest client of the same connection gets a path.
void Meet(Server* server, const TcpAddress& client) {
  auto result = std::make_shared<Result>();
  auto call =
      MeetingCall::Start(client, server->address, OptionsOf(), Into(result));
  Require(result->Waits(), "a liar does not cost an honest client its path");
}

void AttackServer(Input* input) {
  static Server* const server = new Server;
  const TcpAddress client = NextAddress(), neighbour = NextAddress();
  auto of_client = std::make_shared<Result>();
  auto of_neighbour = std::make_shared<Result>();
  auto expected =
      server->place->Expect(client, server->address, Into(of_client));
  auto also =
      server->place->Expect(neighbour, server->address, Into(of_neighbour));
  Liar liar({event_engine::MeetingName(server->address), ""}, base::UniqueFd(),
            MeetingToken(client, server->address));
  liar.Run(input);
  Meet(server, neighbour);
  Require(of_neighbour->Waits(), "the server meets the neighbour");
  if (liar.has_named()) return;
  Meet(server, client);
  Require(of_client->Waits(), "the server meets the client");
}

void AttackClient(Input* input) {
  const TcpAddress client = NextAddress(), server = NextAddress();
  const fabric::shm::SocketAddress at{event_engine::MeetingName(server), ""};
  auto result = std::make_shared<Result>();
  Liar liar(at, fabric::shm::ListenAt(at).value(),
            MeetingToken(client, server));
  auto call = MeetingCall::Start(client, server, OptionsOf(), Into(result));
  liar.Run(input);
  call.reset();
  Require(!result->done.HasBeenNotified() || !result->ok || liar.has_welcomed(),
          "only a welcome makes a path");
}

std::string StepOf(Step step, std::initializer_list<uint8_t> arguments) {
  return std::string(1, static_cast<char>(step)) +
         std::string(arguments.begin(), arguments.end());
}

}  // namespace

std::vector<std::string> Seeds() {
  const std::string server(1, kServer), client(1, kClient);
  const std::string open = StepOf(kOpen, {});
  const auto message = [](SetupMessage::Kind kind, Token token,
                          uint8_t descriptor) {
    const auto number = static_cast<uint8_t>(static_cast<uint8_t>(kind) - 1);
    return StepOf(kMessage, {0, number, 0, token, 0, descriptor});
  };
  const auto hello = SetupMessage::Kind::kHello;
  const auto welcome = SetupMessage::Kind::kWelcome;
  const std::string hang_up = StepOf(kHangUp, {0});
  return {
      server + open + message(hello, kRight, LiarSocket::kControl),
      server + open + message(hello, kRight, LiarSocket::kControl) + hang_up,
      server + open + message(hello, kOfNobody, LiarSocket::kControl) + open,
      server + open + message(hello, kOfNobody, LiarSocket::kNothing),
      server + open + message(welcome, kEmpty, LiarSocket::kUnsealed),
      client + open + message(welcome, kEmpty, LiarSocket::kControl),
      client + open + message(welcome, kEmpty, LiarSocket::kSmall),
      client + open + message(hello, kRight, LiarSocket::kControl),
      client + open + hang_up + open +
          message(welcome, kEmpty, LiarSocket::kControl),
      client + open + StepOf(kRaw, {0, 2, 'P', 'S', LiarSocket::kEvent}),
  };
}

}  // namespace fuzz
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  penstock::fuzz::Input input(data, size);
  if (input.Number<uint8_t>() % penstock::fuzz::kVictims ==
      penstock::fuzz::kServer) {
    penstock::fuzz::AttackServer(&input);
  } else {
    penstock::fuzz::AttackClient(&input);
  }
  return 0;
}
