// Tests peers that speak only version 1 of the protocol, like all builds up to
// commit 6abe3f4, against the current code. Uses recorded bytes of such peers,
// and a small implementation.

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "penstock/allocator.h"
#include "penstock/penstock.h"
#include "tests/adversary/caller.h"
#include "tests/adversary/peer.h"
#include "tests/adversary/service.h"
#include "tests/adversary/shm_peer.h"
#include "tests/adversary/wire.h"

namespace penstock::adversary {
namespace {

constexpr char kRecording[] = "tests/adversary/testdata/version1_session.txt";
constexpr size_t kLarge = 100000;  // the size in the recording's second call
// The largest message that is sent inside frames over tcp instead of being
// announced.
constexpr size_t kEagerMax = 32704;
constexpr uint64_t kPushBytes = 256 * 1024;

// Trailers with only the status 0, by a predefined number.
constexpr char kStatusOk[] = "\x85";

std::string Bytes(const std::string& word) {
  const std::vector<std::string> repeated = absl::StrSplit(word, '*');
  if (repeated.size() == 1) return absl::HexStringToBytes(word);
  int count = 0;
  EXPECT_TRUE(absl::SimpleAtoi(repeated[0], &count));
  return std::string(count, absl::HexStringToBytes(repeated[1])[0]);
}

// Returns one side's recorded turns. The first turn is the negotiation, and the
// second the hello.
std::vector<std::string> Recorded(const std::string& side) {
  std::ifstream file(kRecording);
  EXPECT_TRUE(file) << kRecording;
  std::vector<std::string> turns;
  bool is_its_turn = false;
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, "#")) continue;
    if (!absl::StartsWith(line, " ")) {
      is_its_turn = line == side;
      if (is_its_turn) turns.emplace_back();
    } else if (is_its_turn) {
      turns.back() += Bytes(line.substr(2));
    }
  }
  return turns;
}

// Returns the bytes with acknowledgements lowered to `received` frames. The
// number of the other side's frames depends on timing: a frame about the
// deadline is omitted if the deadline has not changed.
std::string Acknowledging(std::string said, uint64_t received) {
  constexpr size_t kUnitHeader = 16;
  constexpr size_t kAckOffset = 24;
  for (size_t unit = 0; unit < said.size();) {
    const size_t end = unit + kUnitHeader + Number(said.substr(unit, 4));
    const bool is_packet = said[unit + 4] == unit::kPacket;
    for (size_t frame = unit + kUnitHeader; is_packet && frame < end;) {
      const uint64_t ack = Number(said.substr(frame + kAckOffset, 8));
      said.replace(frame + kAckOffset, 8, U64(std::min(ack, received)));
      frame += kFrameHeaderBytes + Number(said.substr(frame, 4));
    }
    unit = end;
  }
  return said;
}

// The server of service.h with one more method, kPooled.
constexpr char kPooled[] = "/victim/Pooled";

// Answers with three slices: a short one between two of 64 KiB in the pool.
class Pooled final : public grpc::ServerGenericBidiReactor {
 public:
  Pooled() {
    const std::vector<grpc::Slice> slices = {PooledSlice(), grpc::Slice("-"),
                                             PooledSlice()};
    message_ = grpc::ByteBuffer(slices.data(), slices.size());
    StartWriteAndFinish(&message_, {}, grpc::Status::OK);
  }
  void OnDone() override { delete this; }

 private:
  static grpc::Slice PooledSlice() {
    const Allocator::Buffer buffer = Allocator::Allocate(64 * 1024);
    std::fill_n(buffer.data(), buffer.size(), 'p');
    return buffer.ToSlice();
  }

  grpc::ByteBuffer message_;
};

class AllMethods final : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    if (context->method() == kPooled) return new Pooled;
    return service_.CreateReactor(context);
  }

 private:
  Service service_;
};

// A fixture of the current server, and a peer with version 1.
class Version1Client : public ::testing::Test {
 protected:
  Version1Client() {
    grpc::ServerBuilder builder;
    Enable(&builder);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterCallbackGenericService(&methods_);
    server_ = builder.BuildAndStart();
    peer_ = Peer::Connect(port_, &traffic_);
    peer_->version = 1;
  }

  void Say(const std::string& recorded) {
    peer_->Write(Acknowledging(recorded, peer_->last_received()));
  }
  // Returns the next frame of this type, or an empty frame.
  Frame Await(uint8_t type) { return peer_->Await(type).value_or(Frame()); }
  // Returns the joined payload of the frames up to the last fragment.
  std::string AwaitLong(uint8_t type) {
    std::string payload;
    Frame frame;
    do {
      frame = Await(type);
      payload += frame.payload;
    } while ((frame.flags & kMoreFragments) != 0);
    return payload;
  }
  void ExpectEnd(uint32_t stream) {
    const Frame trailers = Await(type::kTrailers);
    EXPECT_EQ(trailers.stream, stream);
    EXPECT_EQ(trailers.payload, kStatusOk);
  }
  // Returns the next unit of this type, and drops other units and frames.
  Peer::Received AwaitUnit(uint8_t unit) {
    while (absl::optional<Peer::Received> received = peer_->Next()) {
      if (received->unit == unit) return *received;
    }
    ADD_FAILURE() << "no unit " << int{unit} << " comes";
    return {};
  }
  // Expects the push and the frames of the recording's second call, in any
  // order, because a push does not delay frames.
  void ExpectPushAndEnd(uint32_t stream) {
    size_t pushed = 0;
    absl::optional<Frame> end;
    while (pushed == 0 || !end.has_value()) {
      const absl::optional<Peer::Received> received = peer_->Next();
      ASSERT_TRUE(received.has_value());
      if (received->unit == unit::kPush) pushed = received->size;
      if (received->frame.type == type::kTrailers) end = received->frame;
    }
    EXPECT_EQ(pushed, kLarge);
    EXPECT_EQ(end->stream, stream);
    EXPECT_EQ(end->payload, kStatusOk);
  }
  // Answers the server's reads until the server has released the message.
  void ServeReads(uint64_t id) {
    while (absl::optional<Peer::Received> received = peer_->Next()) {
      if (received->unit == unit::kPacket &&
          received->frame.type == type::kRelease) {
        EXPECT_EQ(received->frame.payload, U64(id));
        return;
      }
      if (received->unit != unit::kRead) continue;
      const uint64_t length = Number(received->body.substr(16, 4));
      peer_->SendUnit(unit::kReadData, received->cookie,
                      std::string(length, 'e'));
    }
    ADD_FAILURE() << "the server does not release the message";
  }
  void SendMessage(uint32_t stream, size_t size) {
    if (size <= kEagerMax) {
      peer_->SendLong(FrameOf(type::kMessage, stream, std::string(size, 'e')));
      return;
    }
    ++announced_;
    peer_->Send(FrameOf(type::kAnnounce, stream,
                        AnnouncementV1(announced_, size, announced_)));
    ServeReads(announced_);
  }
  // Reads an announced message of this size: first the pushed part, then the
  // rest.
  void PullMessage(size_t size) {
    const Frame announced = Await(type::kAnnounce);
    ASSERT_EQ(announced.payload.size(), AnnouncementV1(0, 0, 0).size());
    const uint64_t key = Number(announced.payload.substr(21, 8));
    EXPECT_EQ(
        announced.payload,
        AnnouncementV1(Number(announced.payload.substr(0, 8)), size, key));
    const Peer::Received pushed = AwaitUnit(unit::kPush);
    EXPECT_EQ(pushed.cookie, key);
    EXPECT_EQ(pushed.size, std::min<uint64_t>(size, kPushBytes));
    for (uint64_t at = pushed.size; at < size;) {
      const uint64_t length = std::min<uint64_t>(size - at, kPushBytes);
      peer_->SendUnit(unit::kRead, at,
                      absl::StrCat(U64(key), U64(at), U32(length)));
      EXPECT_EQ(AwaitUnit(unit::kReadData).size, length);
      at += length;
    }
    peer_->Send(FrameOf(type::kRelease, 0, announced.payload.substr(0, 8)));
  }

  int port_ = 0;
  AllMethods methods_;
  std::unique_ptr<grpc::Server> server_;
  Traffic traffic_;
  std::unique_ptr<Peer> peer_;
  uint64_t announced_ = 0;
};

TEST_F(Version1Client, IsServedAsItWas) {
  const std::vector<std::string> said = Recorded("client");
  ASSERT_EQ(said.size(), 5u);
  EXPECT_EQ(said[0], ClientPreface(1));
  ASSERT_TRUE(peer_->Negotiate());
  peer_->Write(said[1]);
  EXPECT_TRUE(ParseHello(Await(type::kHello).payload).has_value());
  Say(said[2]);
  EXPECT_EQ(Await(type::kMessage).payload, "eeeeeeee");
  ExpectEnd(1);
  Say(said[3]);
  EXPECT_EQ(Await(type::kRelease).payload, U64(1));
  EXPECT_EQ(Await(type::kAnnounce).payload.size(), 37u);
  ExpectPushAndEnd(2);
  Say(said[4]);
  EXPECT_TRUE(peer_->Finish());
}

TEST_F(Version1Client, SendsAndReceivesMessagesOfAllSizes) {
  ASSERT_TRUE(peer_->Negotiate());
  ASSERT_TRUE(peer_->Greet(Hello()));
  for (size_t size :
       {size_t{1}, size_t{16000}, kEagerMax, kEagerMax + 1, size_t{kPushBytes},
        size_t{kPushBytes + 1}, size_t{3} << 20}) {
    SCOPED_TRACE(size);
    const uint32_t stream = peer_->OpenStream(RequestMetadata(kEcho));
    SendMessage(stream, size);
    if (size <= kEagerMax) {
      EXPECT_EQ(AwaitLong(type::kMessage), std::string(size, 'e'));
    } else {
      PullMessage(size);
    }
    peer_->Send(FrameOf(type::kHalfClose, stream));
    ExpectEnd(stream);
  }
  EXPECT_TRUE(peer_->Finish());
}

// Tests that the server announces one part per path, regardless of the number
// of slices.
TEST_F(Version1Client, IsAnnouncedOnePartOverSharedMemory) {
  ASSERT_TRUE(peer_->Negotiate());
  ASSERT_TRUE(peer_->Greet(ShmHello()));
  const std::unique_ptr<ShmPath> path = ShmPath::Connect(peer_.get());
  ASSERT_NE(path, nullptr);
  const uint32_t stream = peer_->OpenStream(RequestMetadata(kPooled));
  peer_->Send(FrameOf(type::kHalfClose, stream));
  const auto until = std::chrono::steady_clock::now() + kPatience;
  std::string announced;
  while (announced.empty() && std::chrono::steady_clock::now() < until) {
    for (const Frame& frame : path->victim_memory().Frames()) {
      if (frame.type == type::kAnnounce) announced = frame.payload;
    }
    std::this_thread::yield();
  }
  ASSERT_EQ(announced.size(), 8u + 8 + 1 + 2 * (4 + 8 + 8));
  EXPECT_EQ(announced.substr(8, 9),
            absl::StrCat(U64(2 * 64 * 1024 + 1), U8(2)));
  EXPECT_EQ(announced.substr(17, 4), U32(1)) << "the path";
  EXPECT_EQ(announced.substr(37, 4), U32(0)) << "the lifeline";
  EXPECT_TRUE(peer_->Finish());
}

// A fixture of the current client, which calls a peer with version 1.
class Version1Server : public ::testing::Test {
 protected:
  // Makes a call, answered by `serve` with a peer that has negotiated.
  template <typename Serve>
  void CallAndServe(const std::vector<size_t>& sizes, Serve serve) {
    Options options;
    options.fabrics = {{Fabric::kTcp}};
    const auto channel = NewChannel(listener_.port(), options);
    std::vector<grpc::Status> results;
    std::thread calls([&] {
      for (size_t size : sizes) results.push_back(Echo(channel.get(), size));
    });
    const std::unique_ptr<Peer> peer = listener_.Accept(kPatience, &traffic_);
    EXPECT_NE(peer, nullptr);
    if (peer != nullptr) {
      peer->version = 1;
      EXPECT_TRUE(peer->Negotiate());
      serve(peer.get());
    }
    calls.join();
    for (const grpc::Status& result : results) {
      EXPECT_TRUE(result.ok()) << result.error_message();
    }
  }
  static void Say(Peer* peer, const std::string& recorded) {
    peer->Write(Acknowledging(recorded, peer->last_received()));
  }

  Traffic traffic_;
  Listener listener_;
};

TEST_F(Version1Server, IsUnderstoodAsItWas) {
  const std::vector<std::string> said = Recorded("server");
  ASSERT_EQ(said.size(), 5u);
  EXPECT_EQ(said[0], ServerSettings(1));
  CallAndServe({8, kLarge}, [&](Peer* peer) {
    EXPECT_TRUE(peer->Await(type::kHello).has_value());
    peer->Write(said[1]);
    EXPECT_TRUE(peer->Await(type::kMessage).has_value());
    Say(peer, said[2]);
    EXPECT_TRUE(peer->Await(type::kAnnounce).has_value());
    Say(peer, said[3]);
    EXPECT_EQ(peer->Await(type::kRelease).value_or(Frame()).payload, U64(1));
    Say(peer, said[4]);
  });
}

TEST_F(Version1Server, IsSentAnnouncementsOfItsVersion) {
  CallAndServe({kLarge}, [&](Peer* peer) {
    Hello hello;
    hello.token = std::string(16, 't');
    ASSERT_TRUE(peer->Greet(hello));
    const absl::optional<Frame> announced = peer->Await(type::kAnnounce);
    ASSERT_TRUE(announced.has_value());
    const uint64_t key = Number(announced->payload.substr(21, 8));
    EXPECT_EQ(announced->payload, AnnouncementV1(1, kLarge, key));
    const uint32_t stream = announced->stream;
    peer->Send(FrameOf(type::kRelease, 0, U64(1)));
    peer->Send(FrameOf(type::kHeaders, stream, ResponseMetadata()));
    peer->Send(FrameOf(type::kAnnounce, stream,
                       AnnouncementV1(1, kLarge, unit::kPushed | 1)));
    peer->SendUnit(unit::kPush, unit::kPushed | 1, std::string(kLarge, 'e'));
    peer->Send(FrameOf(type::kTrailers, stream, Known(key::kGrpcStatus, "0")));
    EXPECT_EQ(peer->Await(type::kRelease).value_or(Frame()).payload, U64(1));
  });
}

}  // namespace
}  // namespace penstock::adversary
