// Tests that a worker's heartbeats reach each server, regardless of the other
// servers.

#include "ps/client/heartbeat.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "ps/wire/ps.grpc.pb.h"
#include "tests/transport/base/set_clock.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

// The lease of a worker. Also limits the time that a leaving worker may take.
constexpr absl::Duration kLease = absl::Milliseconds(600);
constexpr absl::Duration kPatience = absl::Seconds(10);
constexpr uint64_t kRun = 4711;
constexpr uint32_t kRank = 3;

// A service that counts the heartbeats of one run and worker. Ends each stream
// with `status` after `limit` heartbeats.
class CountingService final : public v1::ParameterServer::Service {
 public:
  CountingService(int limit, grpc::Status status)
      : limit_(limit), status_(std::move(status)) {}

  grpc::Status Attend(grpc::ServerContext* context,
                      grpc::ServerReader<v1::Heartbeat>* reader,
                      v1::AttendReply* reply) override {
    Count(&streams_);
    v1::Heartbeat beat;
    for (int i = 0; i < limit_ && reader->Read(&beat); ++i) {
      if (beat.run() != kRun || beat.worker().rank() != kRank) continue;
      Count(beat.leaving() ? &leaves_ : &beats_);
    }
    return status_;
  }

  // Waits for `count` heartbeats or streams. Returns false after kPatience.
  bool WaitForBeats(int count) { return WaitFor(count, &beats_); }
  bool WaitForStreams(int count) { return WaitFor(count, &streams_); }

  int streams() { return Get(&streams_); }
  int beats() { return Get(&beats_); }
  int leaves() { return Get(&leaves_); }

 private:
  void Count(int* counter) {
    absl::MutexLock lock(&mu_);
    ++*counter;
    changed_.Signal();
  }
  int Get(int* counter) {
    absl::MutexLock lock(&mu_);
    return *counter;
  }
  bool WaitFor(int count, int* counter) {
    absl::MutexLock lock(&mu_);
    const absl::Time limit = base::SteadyNow() + kPatience;
    while (*counter < count && base::SteadyNow() < limit) {
      changed_.WaitUntil(&mu_, limit);
    }
    return *counter >= count;
  }

  const int limit_;
  const grpc::Status status_;
  absl::Mutex mu_;
  base::SteadyCondVar changed_;
  int streams_ = 0;
  int beats_ = 0;
  int leaves_ = 0;
};

class CountingServer {
 public:
  explicit CountingServer(int limit = 1 << 20,
                          grpc::Status status = grpc::Status())
      : service(limit, std::move(status)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(&service);
    server_ = builder.BuildAndStart();
  }
  ~CountingServer() {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  CountingService service;
  int port = 0;

 private:
  std::unique_ptr<grpc::Server> server_;
};

// A server that never answers, although the kernel accepts connections.
class BlackHole {
 public:
  BlackHole() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(socket_, generic, size), 0);
    EXPECT_EQ(listen(socket_, 16), 0);
    EXPECT_EQ(getsockname(socket_, generic, &size), 0);
    port = ntohs(address.sin_port);
  }

  ~BlackHole() { close(socket_); }

  int port = 0;

 private:
  const int socket_;
};

std::unique_ptr<HeartbeatSender> SendTo(const std::vector<int>& ports) {
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int port : ports) {
    channels.push_back(grpc::CreateChannel(absl::StrCat("127.0.0.1:", port),
                                           grpc::InsecureChannelCredentials()));
  }
  v1::WorkerId worker;
  worker.set_rank(kRank);
  return std::make_unique<HeartbeatSender>(channels, kRun, worker, kLease);
}

TEST(Heartbeat, ServerThatNeverAnswersHoldsUpNoOther) {
  BlackHole black_hole;
  CountingServer first;
  CountingServer second;
  const auto sender = SendTo({black_hole.port, first.port, second.port});
  EXPECT_TRUE(first.service.WaitForBeats(4));
  EXPECT_TRUE(second.service.WaitForBeats(4));
  sender->Leave();
  EXPECT_EQ(first.service.leaves(), 1);
  EXPECT_EQ(second.service.leaves(), 1);
}

TEST(Heartbeat, StreamThatBreaksIsOpenedAnew) {
  CountingServer server(
      /*limit=*/1, grpc::Status(grpc::StatusCode::UNAVAILABLE, "for a moment"));
  const auto sender = SendTo({server.port});
  EXPECT_TRUE(server.service.WaitForStreams(3));
}

class EndTest : public testing::TestWithParam<grpc::StatusCode> {};

// Tests a status that ends the membership: another process has the rank, or the
// server runs another training.
TEST_P(EndTest, AServerThatHasEndedItForGoodGetsNoMore) {
  CountingServer ending(/*limit=*/1, grpc::Status(GetParam(), "for good"));
  CountingServer other;
  const auto sender = SendTo({ending.port, other.port});
  EXPECT_TRUE(ending.service.WaitForStreams(1));
  EXPECT_TRUE(other.service.WaitForBeats(4));
  sender->Leave();
  EXPECT_EQ(ending.service.streams(), 1);
  EXPECT_EQ(ending.service.leaves(), 0);
}

INSTANTIATE_TEST_SUITE_P(Codes, EndTest,
                         testing::Values(grpc::StatusCode::ABORTED,
                                         grpc::StatusCode::DATA_LOSS));

TEST(Heartbeat, EndWithoutLeavingBreaksOff) {
  CountingServer server;
  auto sender = SendTo({server.port});
  EXPECT_TRUE(server.service.WaitForBeats(1));
  sender = nullptr;
  EXPECT_EQ(server.service.leaves(), 0);
}

// Tests that heartbeats go on after the system's clock was set back. By this
// clock, the next heartbeat would be an hour away.
TEST(Heartbeat, ClockThatIsSetBackStopsNone) {
  CountingServer server;
  const auto sender = SendTo({server.port});
  EXPECT_TRUE(server.service.WaitForBeats(1));
  SetClockBy(-absl::Hours(1));
  EXPECT_TRUE(server.service.WaitForBeats(server.service.beats() + 3));
  SetClockBy(absl::ZeroDuration());
}

// Tests that streams do not break after the system's clock was set forward. By
// this clock, a stream would have exceeded its timeout.
TEST(Heartbeat, ClockThatIsSetForwardBreaksNone) {
  CountingServer server;
  const auto sender = SendTo({server.port});
  EXPECT_TRUE(server.service.WaitForBeats(1));
  for (int hours = 1; hours <= 3; ++hours) {
    SetClockBy(absl::Hours(hours));
    EXPECT_TRUE(server.service.WaitForBeats(server.service.beats() + 1));
  }
  SetClockBy(absl::ZeroDuration());
  sender->Leave();
  EXPECT_EQ(server.service.streams(), 1);
  EXPECT_EQ(server.service.leaves(), 1);
}

}  // namespace
}  // namespace penstock::ps
