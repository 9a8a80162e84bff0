// Tests clients that send bytes that Penstock's client never sends. The server
// must drop these clients in bounded time, and must continue to serve others.

#include "tests/transport/rpc/raw_client.h"

#include <dirent.h>

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/transport/rpc/awaited.h"
#include "transport/memory/bytes.h"
#include "transport/rpc/client.h"
#include "transport/rpc/greeting.h"
#include "transport/rpc/head.h"
#include "transport/rpc/server.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace rpc {
namespace {

size_t OpenDescriptors() {
  DIR* const directory = opendir("/proc/self/fd");
  size_t count = 0;
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

// Returns a payload that reports when its memory is freed.
memory::Payload Tracked(size_t bytes, const Awaited<bool>& gone) {
  std::shared_ptr<std::string> owner(new std::string(bytes, 'x'),
                                     [gone](std::string* text) {
                                       delete text;
                                       gone.Set(true);
                                     });
  return memory::Payload(memory::Bytes{
      reinterpret_cast<const uint8_t*>(owner->data()), owner->size(), owner});
}

class RawClientTest : public testing::Test {
 protected:
  RawClientTest() {
    Server::Options options;
    options.address = "127.0.0.1:0";
    options.token = kToken;
    options.settings.fabrics = {Fabric::kTcp};
    server_ = *Server::Start(
        options,
        [handled = handled_, kept = kept_](std::shared_ptr<IncomingCall> call) {
          handled.Set(call->request().method);
          if (call->request().method == "keep") return kept.Set(call);
          call->Respond(Response());
        },
        [streams = streams_](std::shared_ptr<IncomingStream> stream) {
          streams.Set(std::move(stream));
        });
    Client::Options client;
    client.target = absl::StrCat("127.0.0.1:", port());
    client.token = kToken;
    client.settings.fabrics = {Fabric::kTcp};
    bystander_ = *Client::Connect(client, [](const absl::Status&) {});
    ExpectServed();
  }
  ~RawClientTest() override { ExpectServed(); }

  int port() const { return server_->port(); }
  void ExpectServed() {
    const Awaited<absl::Status> status;
    Request request;
    request.method = "bystander";
    bystander_->Call(std::move(request),
                     [status](absl::StatusOr<Response> response) {
                       status.Set(response.status());
                     });
    EXPECT_TRUE(status.Get()->ok());
    EXPECT_EQ(*handled_.Get(), "bystander");
  }
  static std::string Head(const std::string& method = "raw") {
    Request request;
    request.method = method;
    return *EncodeRequest(request);
  }
  static std::string StreamHead() {
    Request request;
    request.method = "stream";
    return *EncodeRequest(request, /*is_stream=*/true);
  }

  const Awaited<std::string> handled_;
  const Awaited<std::shared_ptr<IncomingCall>> kept_;
  const Awaited<std::shared_ptr<IncomingStream>> streams_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Client> bystander_;
};

TEST_F(RawClientTest, OtherProtocolsAreDroppedAtOnce) {
  for (const char* text :
       {"GET / HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n", "\x16\x03\x01", "x"}) {
    RawClient client(port());
    client.Send(text);
    EXPECT_TRUE(client.IsDropped(absl::Seconds(3))) << text;
  }
}

TEST_F(RawClientTest, SilentOnesAreDropped) {
  RawClient mute(port());
  RawClient half(port());
  half.Send("PSTKrpc?");
  RawClient greeted(port());
  greeted.Greet();
  EXPECT_TRUE(mute.IsDropped());
  EXPECT_TRUE(half.IsDropped());
  EXPECT_TRUE(greeted.IsDropped());
}

TEST_F(RawClientTest, VersionsOfTheFutureAreRefused) {
  RawClient client(port());
  client.Send(EncodeGreeting({200, 201, kToken}));
  EXPECT_TRUE(client.IsDropped(absl::Seconds(3)));
}

TEST_F(RawClientTest, RandomBytesBehindTheGreetingAreDropped) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 100; ++i) {
    RawClient client(port());
    client.Greet();
    if (i % 2 == 1) client.SayHello();
    std::string bytes(64 + random() % 1000, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    client.Send(bytes);
  }
}

TEST_F(RawClientTest, CallsThatAreMadeWrongAreAnsweredOrDropped) {
  const std::vector<std::function<void(RawClient*)>> calls = {
      [](RawClient* client) {  // a head that is cut short
        client->SendFrame(wire::FrameType::kHeaders, 1, 0, "short");
      },
      [](RawClient* client) {  // a head without a method
        client->SendFrame(wire::FrameType::kHeaders, 1, 0,
                          std::string(20, '\0'));
      },
      [](RawClient* client) {  // two heads
        client->SendFrame(wire::FrameType::kHeaders, 1, 0, Head());
        client->SendFrame(wire::FrameType::kHeaders, 1, 0, Head());
      },
      [](RawClient* client) {  // two messages
        client->SendFrame(wire::FrameType::kHeaders, 1, 0, Head());
        client->SendFrame(wire::FrameType::kMessage, 1, 0, "one");
        client->SendFrame(wire::FrameType::kMessage, 1, wire::kLast, "two");
      },
      [](RawClient* client) {  // a compressed message
        client->SendFrame(wire::FrameType::kHeaders, 1, 0, Head());
        client->SendFrame(wire::FrameType::kMessage, 1,
                          wire::kCompressed | wire::kLast, "x");
      },
      [](RawClient* client) {  // trailers of a client
        client->SendFrame(wire::FrameType::kHeaders, 1, 0, Head());
        client->SendFrame(wire::FrameType::kTrailers, 1, 0, "");
      },
      [](RawClient* client) {  // no head
        client->SendFrame(wire::FrameType::kHalfClose, 1, 0, "");
      },
      [](RawClient* client) {  // an entry of metadata
        client->SendFrame(wire::FrameType::kEntry, 0, 0, "key");
      },
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    RawClient client(port());
    client.Greet();
    client.SayHello();
    calls[i](&client);
    ExpectServed();
  }
  EXPECT_EQ(handled_.count(),
            calls.size() + 1);  // including the bystander's call
}

TEST_F(RawClientTest, StreamsThatAreUsedWrongEnd) {
  const std::vector<std::function<void(RawClient*)>> mistakes = {
      [](RawClient* client) {  // two heads
        client->SendFrame(wire::FrameType::kHeaders, 1, 0, StreamHead());
      },
      [](RawClient* client) {  // a message after the half-close
        client->SendFrame(wire::FrameType::kHalfClose, 1, 0, "");
        client->SendFrame(wire::FrameType::kMessage, 1, 0, "late");
      },
      [](RawClient* client) {  // two half-closes
        client->SendFrame(wire::FrameType::kMessage, 1, wire::kLast, "last");
        client->SendFrame(wire::FrameType::kHalfClose, 1, 0, "");
      },
      [](RawClient* client) {  // a compressed message
        client->SendFrame(wire::FrameType::kMessage, 1, wire::kCompressed, "x");
      },
      [](RawClient* client) {  // trailers of a client
        client->SendFrame(wire::FrameType::kTrailers, 1, 0, "");
      },
      [](RawClient* client) {  // more than the window, which the server drops
        for (int i = 0; i < 1000 && !client->IsDropped(absl::ZeroDuration());
             ++i) {
          client->SendFrame(wire::FrameType::kMessage, 1, 0,
                            std::string(60000, 'x'));
        }
      },
  };
  for (size_t i = 0; i < mistakes.size(); ++i) {
    RawClient client(port());
    client.Greet();
    client.SayHello();
    client.SendFrame(wire::FrameType::kHeaders, 1, 0, StreamHead());
    const std::shared_ptr<IncomingStream> stream = *streams_.Get();
    mistakes[i](&client);
    const Awaited<bool> cancelled;
    stream->OnCancel([cancelled] { cancelled.Set(true); });
    EXPECT_TRUE(cancelled.Get().has_value()) << i;
    const Awaited<bool> ended;
    const Awaited<bool> accepted;
    stream->Read([ended](const absl::optional<memory::Payload>& message) {
      ended.Set(!message.has_value());
    });
    EXPECT_EQ(ended.Get(), absl::make_optional(true)) << i;
    stream->Write(memory::Payload(),
                  [accepted](bool is_accepted) { accepted.Set(is_accepted); });
    EXPECT_EQ(accepted.Get(), absl::make_optional(false)) << i;
    ExpectServed();
  }
}

// Tests a client that opens more streams than the server takes at once.
TEST_F(RawClientTest, StreamsAboveTheLimitReachNoHandler) {
  constexpr uint32_t kMaxCalls = 100;
  Server::Options options;
  options.address = "127.0.0.1:0";
  options.token = kToken;
  options.settings.fabrics = {Fabric::kTcp};
  options.max_calls = kMaxCalls;
  const std::unique_ptr<Server> server =
      *Server::Start(options, nullptr,
                     [streams = streams_](std::shared_ptr<IncomingStream> got) {
                       streams.Set(std::move(got));
                     });
  RawClient client(server->port());
  client.Greet();
  client.SayHello();
  for (uint32_t i = 0; i < 20 * kMaxCalls; ++i) {
    client.SendFrame(wire::FrameType::kHeaders, 1 + i, 0, StreamHead());
  }
  // Waits until the server has received all frames: the last of the first
  // streams has then ended.
  client.SendFrame(wire::FrameType::kTrailers, 1, 0, "");
  const std::shared_ptr<IncomingStream> first = *streams_.Get();
  const Awaited<bool> cancelled;
  first->OnCancel([cancelled] { cancelled.Set(true); });
  EXPECT_TRUE(cancelled.Get().has_value());
  EXPECT_EQ(streams_.count(), kMaxCalls);
}

// Tests that a request does not change after its end, because the handler reads
// it without a lock.
TEST_F(RawClientTest, RequestDoesNotChangeBehindItsEnd) {
  RawClient client(port());
  client.Greet();
  client.SayHello();
  client.SendFrame(wire::FrameType::kHeaders, 1, 0, Head("keep"));
  client.SendFrame(wire::FrameType::kHalfClose, 1, 0, "");
  EXPECT_EQ(*handled_.Get(), "keep");
  const std::shared_ptr<IncomingCall> call = *kept_.Get();
  client.SendFrame(wire::FrameType::kMessage, 1, 0, "more");
  client.SendFrame(wire::FrameType::kHeaders, 3, 0, Head());
  client.SendFrame(wire::FrameType::kHalfClose, 3, 0, "");
  EXPECT_EQ(*handled_.Get(), "raw");
  EXPECT_EQ(call->request().payload.size(), 0);
}

// Tests a call that waits for its answer. For a client that has left, the
// server must keep neither the socket nor queued bytes.
TEST_F(RawClientTest, CallsOfAClientThatHasGoneKeepNothing) {
  const size_t descriptors = OpenDescriptors();
  const Awaited<bool> gone;
  std::shared_ptr<IncomingCall> waiting;
  {
    RawClient client(port());
    client.Greet();
    client.SayHello();
    for (uint32_t stream : {1, 3}) {
      client.SendFrame(wire::FrameType::kHeaders, stream, 0, Head("keep"));
      client.SendFrame(wire::FrameType::kHalfClose, stream, 0, "");
      EXPECT_EQ(*handled_.Get(), "keep");
    }
    (*kept_.Get())->Respond(Response{"", Tracked(size_t{64} << 20, gone)});
    waiting = *kept_.Get();
    EXPECT_EQ(gone.count(), 0);
  }
  EXPECT_TRUE(gone.Get().has_value());
  ExpectServed();  // the open calls have ended
  EXPECT_EQ(OpenDescriptors(), descriptors);
}

TEST_F(RawClientTest, WellMadeCallIsHandled) {
  RawClient client(port());
  client.Greet();
  client.SayHello();
  client.SendFrame(wire::FrameType::kHeaders, 1, 0, Head());
  client.SendFrame(wire::FrameType::kMessage, 1, wire::kLast, "payload");
  EXPECT_EQ(*handled_.Get(), "raw");
}

// Tests a call of a client that begins on tcp and connects its side path later.
TEST_F(RawClientTest, CallIsHandledBeforeASidePathIsChosen) {
  Server::Options options;
  options.address = "127.0.0.1:0";
  options.token = kToken;
  options.settings.fabrics = {Fabric::kShm, Fabric::kTcp};
  Awaited<std::string> handled;
  const std::unique_ptr<Server> server =
      *Server::Start(options, [handled](std::shared_ptr<IncomingCall> call) {
        handled.Set(call->request().method);
      });
  RawClient client(server->port());
  client.Greet();
  client.SayHello({{"shm", /*usable=*/true, "an offer"}});
  client.SendFrame(wire::FrameType::kHeaders, 1, 0, Head("early"));
  client.SendFrame(wire::FrameType::kMessage, 1, wire::kLast, "payload");
  // Expects that the call is handled before the server drops the client, which
  // agrees on no path.
  EXPECT_EQ(handled.Get().value_or("nothing"), "early");
}

}  // namespace
}  // namespace rpc
}  // namespace penstock
