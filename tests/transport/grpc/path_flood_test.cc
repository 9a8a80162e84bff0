// Tests a client that makes its server report one path after another. Checks
// the server's log lines. Checks that neither the flood nor an unread log
// delays other clients' calls.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tests/transport/base/logged.h"
#include "transport/base/byte_order.h"
#include "transport/base/unique_fd.h"
#include "transport/wire/frame.h"
#include "transport/wire/hello.h"

namespace penstock {
namespace {

constexpr int kCycles = 2000;

// A client that writes the frames of docs/protocol.md itself.
class Client {
 public:
  explicit Client(int port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ok_ = connect(socket_.get(), reinterpret_cast<sockaddr*>(&address),
                  sizeof address) == 0;
    static const char kPreface[] =
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        "\0\0\x06\x04\0\0\0\0\0\xfe\x10\x50\x45\x02\x02";
    Write({kPreface, sizeof kPreface - 1});
    char answer[15];
    ok_ = ok_ && recv(socket_.get(), answer, sizeof answer, MSG_WAITALL) ==
                     static_cast<ssize_t>(sizeof answer);
    wire::Hello hello;
    hello.stream_window = 1 << 20;
    wire::FabricOffer offer;
    offer.fabric = "shm";
    offer.usable = true;
    offer.data = "nowhere";
    hello.offers.push_back(offer);
    Send(wire::FrameType::kHello, 0, 0, wire::EncodeHello(hello));
  }

  bool ok() const { return ok_; }

  void Send(wire::FrameType type, uint32_t epoch, uint64_t sequence,
            absl::string_view payload) {
    wire::FrameHeader header;
    header.type = type;
    header.aux = epoch;
    header.sequence = sequence;
    header.length = static_cast<uint32_t>(payload.size());
    std::string frame;
    wire::AppendFrame(header, payload, &frame);
    std::string unit(16, '\0');
    base::StoreLittle<uint32_t>(static_cast<uint32_t>(frame.size()),
                                reinterpret_cast<uint8_t*>(&unit[0]));
    unit[4] = 1;  // kMessage
    Write(unit + frame);
  }

  // Reads until the server has closed the connection.
  void Drain() {
    char buffer[65536];
    while (read(socket_.get(), buffer, sizeof buffer) > 0) {
    }
  }
  void HalfClose() { shutdown(socket_.get(), SHUT_WR); }

 private:
  void Write(absl::string_view bytes) {
    while (ok_ && !bytes.empty()) {
      const ssize_t sent =
          send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      ok_ = sent > 0;
      if (ok_) bytes.remove_prefix(sent);
    }
  }

  const base::UniqueFd socket_;
  bool ok_ = false;
};

// Sends many cycles. In each cycle, the client begins an attempt at a path, and
// then abandons the attempt with a reason.
bool Flood(int port) {
  Client client(port);
  std::thread reader([&client] { client.Drain(); });
  for (uint32_t epoch = 1; epoch <= kCycles; ++epoch) {
    client.Send(wire::FrameType::kPathLost, epoch, 0,
                absl::StrCat("cycle ", epoch, "\nforged \x1b[2J",
                             std::string(15000, 'x')));
    client.Send(wire::FrameType::kPathWanted, epoch + 1, 0, "");
  }
  client.HalfClose();
  reader.join();  // the server has read all frames
  return client.ok();
}

// Returns true if the server answers that the method does not exist.
bool Answers(int port) {
  const auto channel =
      grpc::CreateChannel(absl::StrCat("127.0.0.1:", port),
                          Credentials(grpc::InsecureChannelCredentials()));
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  grpc::Slice empty;
  grpc::ByteBuffer request(&empty, 1);
  grpc::ByteBuffer reply;
  grpc::Status status;
  auto call = stub.PrepareUnaryCall(&context, "/no/method", request, &queue);
  call->StartCall();
  call->Finish(&reply, &status, &status);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  return status.error_code() == grpc::StatusCode::UNIMPLEMENTED;
}

// Ends the process, which is a child of the test. The exit status is 0 after
// success.
void ServeAFlood() {
  unsetenv("PENSTOCK_LOG");
  grpc::CallbackGenericService service;
  grpc::ServerBuilder builder;
  builder.RegisterCallbackGenericService(&service);
  Enable(&builder);
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (!Flood(port)) _exit(2);
  if (!Answers(port)) _exit(3);
}

TEST(PathFlood, IsAFewShortLinesOfTheLog) {
  const std::string log = LoggedBy(ServeAFlood);
  EXPECT_TRUE(absl::StrContains(log, R"(cycle 1\x0aforged \x1b[2Jxxx)")) << log;
  EXPECT_TRUE(absl::StrContains(log, absl::StrCat("cycle ", kCycles)))
      << "the last one is told";
  EXPECT_LT(std::count(log.begin(), log.end(), '\n'), 30);
  EXPECT_LT(log.size(), 32u * 1024);
}

TEST(PathFlood, LogThatNobodyReadsHoldsUpNoCall) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const base::UniqueFd reading(ends[0]);
  const base::UniqueFd writing(ends[1]);
  const std::string full(65536, 'x');
  ASSERT_EQ(write(writing.get(), full.data(), full.size()),
            static_cast<ssize_t>(full.size()));
  RunWithStderr(writing.get(), ServeAFlood);
}

}  // namespace
}  // namespace penstock
