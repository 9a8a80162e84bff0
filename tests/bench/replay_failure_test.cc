// Tests a replay with a failing call. The replay must end with an error,
// regardless of its other clients.

#include <memory>
#include <string>
#include <vector>

#include "bench/rpc/client/replay.h"
#include "bench/rpc/client/watchdog.h"
#include "bench/rpc/recording/recording.h"
#include "bench/rpc/server/server.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"

namespace penstock {
namespace bench {
namespace {

RecordedCall CallOf(size_t client, int64_t begun_us, int64_t ended_after_us) {
  RecordedCall call;
  call.client = client;
  call.method = "/a.B/C";
  call.begun_us = begun_us;
  call.ended_after_us = ended_after_us;
  call.messages = {{0, 8, false}, {ended_after_us, 8, true}};
  return call;
}

// Returns a recording of two clients. One client makes sequential calls, and
// its last call fails. Some calls of the other client overlap, so this client
// has several lanes. Many calls follow, each of which waits for the previous
// one, so that all lanes but one wait.
Recording TwoClients(int64_t until_failure) {
  constexpr int64_t kLanes = 24;
  constexpr int64_t kChain = 400;
  Recording recording;
  recording.clients = 2;
  for (int64_t i = 0; i < kLanes; ++i) {
    recording.calls.push_back(CallOf(1, 0, 10));
  }
  for (int64_t i = 0; i < kChain; ++i) {
    recording.calls.push_back(CallOf(1, 20 + 2 * i, 1));
    if (i < until_failure) {
      recording.calls.push_back(CallOf(0, 20 + 2 * i, 1));
    }
  }
  RecordedCall wrong = CallOf(0, 20 + 2 * kChain, 1);
  wrong.messages[0].bytes = 9;
  recording.calls.push_back(wrong);
  return recording;
}

// Returns the same recording with a different request size.
Recording Expected(Recording recording) {
  recording.calls.back().messages[0].bytes = 8;
  return recording;
}

TEST(ReplayFailureTest, EndsThoughOtherClientsWait) {
  Watchdog watchdog;
  watchdog.SetLabel("a lane waits for ever");
  for (int64_t round = 0; round < 60; ++round) {
    const Recording recording = TwoClients(1 + 5 * round);
    const std::unique_ptr<ServiceHost> host =
        MakeReplayHost(std::make_shared<const Recording>(Expected(recording)));
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    host->Register(&builder);
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    ASSERT_NE(server, nullptr);
    host->Start();
    std::vector<std::shared_ptr<grpc::Channel>> channels;
    for (size_t i = 0; i < recording.clients; ++i) {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      channels.push_back(grpc::CreateCustomChannel(
          "127.0.0.1:" + std::to_string(port),
          grpc::InsecureChannelCredentials(), arguments));
    }
    EXPECT_FALSE(Replay(recording, channels, kMaxSpeed, &watchdog).ok());
    server->Shutdown();
    host->Drain();
  }
}

}  // namespace
}  // namespace bench
}  // namespace penstock
