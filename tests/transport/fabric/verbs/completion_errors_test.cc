// Tests three causes for the end of a connection: a failed request, a peer that
// has gone, and a device that has gone.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/drain_loop.h"
#include "tests/transport/fabric/verbs/ends.h"
#include "transport/fabric/verbs/status.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

// Two ends. At the client, requests of every kind are in flight, because the
// network holds them.
class BusyEnds {
 public:
  explicit BusyEnds(Options options = {}) : ends(DeviceOptions(), options) {
    const absl::Status connected = ends.Connect();
    EXPECT_TRUE(connected.ok()) << connected;
    const RemotePart there =
        ends.server->Expose(Ends::PayloadOf(std::string(1000, 's')), 1)
            ->region[0];
    const RemoteRegion small =
        ends.client->Expose(Ends::PayloadOf(std::string(1000, 'c')), 1)->region;
    // Exposes a payload that has its own region.
    EXPECT_TRUE(
        ends.client->Expose(Ends::PayloadOf(std::string(1 << 20, 'l')), 1)
            .ok());
    ends.Exchange();
    ends.api->Hold();
    for (uint64_t cookie : {1, 2}) {
      ends.client->Read(there, 0, {&into[cookie * 1000], 1000}, cookie);
    }
    EXPECT_TRUE(Ends::Send(ends.client, "to be lost"));
    EXPECT_TRUE(
        ends.client->Expose(Ends::PayloadOf(std::string(2000, 'd')), 1).ok());
    ends.client->Withdraw(small);
    regions_ = ends.api->counts().mrs;
  }

  // Expects that the client reports its end once, after its reads. Then the
  // server reports its end.
  void ExpectEnd() {
    ASSERT_TRUE(ends.ExchangeUntil([this] {
      return !ends.client.events.broken.empty();
    })) << "the end was never told";
    ASSERT_TRUE(ends.ExchangeUntil([this] {
      return !ends.server.events.broken.empty();
    })) << "the peer was never told";
    ends.Exchange();
    EXPECT_EQ(ends.client.events.broken.size(), 1u);
    EXPECT_EQ(ends.server.events.broken.size(), 1u);
    EXPECT_EQ(ends.client.events.reads.size(), 2u) << "before OnBroken()";
    const Counts counts = ends.api->counts();
    EXPECT_EQ(counts.mws, 0) << "windows are given back";
    EXPECT_EQ(counts.qps, 0);
    EXPECT_EQ(counts.mrs, regions_ - 3) << "the large one and two reads'";
    EXPECT_TRUE(ends.api->misuse().empty()) << ends.api->misuse()[0];
    ExpectDead(&ends.client);
    ends.Close();
    EXPECT_EQ(ends.CountOfConnections(), 0);
  }
  // Expects that the end still answers calls, but does nothing.
  void ExpectDead(End* end) {
    EXPECT_FALSE(Ends::Send(*end, "x"));
    EXPECT_FALSE(
        (*end)->Expose(Ends::PayloadOf(std::string(1000, 'x')), 1).ok());
    (*end)->Withdraw(RemoteRegion(1));
    EXPECT_FALSE((*end)->Poll());
    EXPECT_FALSE((*end)->HasInput());
  }

  std::vector<uint8_t> into = std::vector<uint8_t>(3000);
  Ends ends;

 private:
  int regions_ = 0;
};

struct Operation {
  const char* name;
  ibv_wr_opcode opcode;
};

class CompletionError : public testing::TestWithParam<Operation> {};

TEST_P(CompletionError, EndsTheConnectionOnceWithItsCause) {
  for (int i = IBV_WC_SUCCESS + 1; i <= IBV_WC_TM_RNDV_INCOMPLETE; ++i) {
    SCOPED_TRACE(absl::StrCat("status ", i));
    const auto status = static_cast<ibv_wc_status>(i);
    BusyEnds busy;
    busy.ends.api->CompleteNext(GetParam().opcode, status);
    busy.ends.api->Release();
    ASSERT_NO_FATAL_FAILURE(busy.ExpectEnd());
    EXPECT_EQ(busy.ends.client.events.broken[0], CompletionStatus(status));
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Of, CompletionError,
    testing::Values(Operation{"Send", IBV_WR_SEND},
                    Operation{"Read", IBV_WR_RDMA_READ},
                    Operation{"BindWindow", IBV_WR_BIND_MW},
                    Operation{"LocalInvalidate", IBV_WR_LOCAL_INV}),
    [](const testing::TestParamInfo<Operation>& info) {
      return std::string(info.param.name);
    });

TEST(EndingTest, NewConnectionFollowsAFailedOne) {
  Ends ends;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(ends.Connect().ok());
    ends.api->CompleteNext(IBV_WR_SEND, IBV_WC_RETRY_EXC_ERR);
    ASSERT_TRUE(Ends::Send(ends.client, "x"));
    EXPECT_TRUE(
        ends.ExchangeUntil([&] { return !ends.server.events.broken.empty(); }));
  }
}

TEST(EndingTest, RemovedDeviceEndsBothSides) {
  for (const char* device : {"client", "server"}) {
    BusyEnds busy;
    busy.ends.api->RemoveDevice(device);
    busy.ends.api->Release();
    ASSERT_NO_FATAL_FAILURE(busy.ExpectEnd()) << device;
  }
}

// Tests a lost packet. The packet counts as drained: the owner learns of the
// loss by Poll(), and then sends the packet over another path.
TEST(EndingTest, LostPacketsAreDrainedOnlyAfterPoll) {
  Ends ends;
  ASSERT_TRUE(ends.Connect().ok());
  ends.api->Hold();
  ASSERT_TRUE(Ends::Send(ends.client, "x"));
  ends.api->RemoveDevice("client");
  ends.api->Release();
  DrainLoop();
  EXPECT_TRUE(ends.client->HasInput());
  EXPECT_FALSE(ends.client->IsDrained());
  while (ends.client.events.broken.empty()) ends.client->Poll();
  EXPECT_TRUE(ends.client->IsDrained());
}

TEST(EndingTest, PeerThatGoesIsNoticedWithoutTraffic) {
  Ends ends;
  ASSERT_TRUE(ends.Connect().ok());
  ends.client->SetArmed(true);
  ends.server.endpoint.reset();
  DrainLoop();
  EXPECT_TRUE(ends.client->HasInput());
  ends.client->ClearWakeup();
  ends.Exchange();
  ASSERT_EQ(ends.client.events.broken.size(), 1u);
  EXPECT_EQ(ends.client.events.broken[0].code(),
            absl::StatusCode::kUnavailable);
}

TEST(EndingTest, WhatThePeerSentBeforeItWentIsDelivered) {
  Ends ends;
  ASSERT_TRUE(ends.Connect().ok());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Ends::Send(ends.server, "x"));
  ends.server.endpoint.reset();
  ends.Exchange();
  EXPECT_EQ(ends.client.events.packets.size(), 5u);
  EXPECT_EQ(ends.client.events.broken.size(), 1u);
}

TEST(EndingTest, PeersQueuePairGoneWithoutAWordIsNoticedByTheNextRequest) {
  BusyEnds busy;
  // Kills the server. The network holds back all messages, including the
  // goodbye, so the other requests fail first.
  busy.ends.server.endpoint.reset();
  busy.ends.api->Release();
  ASSERT_TRUE(busy.ends.ExchangeUntil(
      [&] { return !busy.ends.client.events.broken.empty(); }));
  EXPECT_EQ(busy.ends.client.events.reads.size(), 2u);
}

TEST(EndingTest, EndWithWorkUnderWayGivesEverythingBack) {
  BusyEnds busy;
  busy.ends.client.endpoint.reset();
  EXPECT_EQ(busy.ends.client.events.reads.size(), 0u)
      << "destroying gives no events";
  busy.ends.api->Release();
  busy.ends.Close();
  EXPECT_EQ(busy.ends.CountOfConnections(), 0);
}

TEST(EndingTest, EventOfTheEndMayDestroyTheEndpoint) {
  BusyEnds busy;
  busy.ends.api->CompleteNext(IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR);
  busy.ends.client.events.on_read_done = [&](uint64_t) {
    busy.ends.client.endpoint.reset();
  };
  busy.ends.api->Release();
  busy.ends.Exchange();
  EXPECT_EQ(busy.ends.client.events.reads.size(), 1u);
  EXPECT_EQ(busy.ends.client.events.broken.size(), 0u);
  EXPECT_EQ(busy.ends.client.endpoint, nullptr);
}

// Tests a device that delivers neither completions nor events. Only a timeout
// can detect this.
TEST(EndingTest, BlackHoleIsNoticedByTheClock) {
  Options options;
  options.completion_timeout = absl::Milliseconds(200);
  BusyEnds busy(options);
  busy.ends.api->CutLink("client", "server");
  busy.ends.api->Release();
  EXPECT_TRUE(busy.ends.ExchangeUntil([&] {
    return !busy.ends.client.events.broken.empty();
  })) << "nobody looked at the clock";
  EXPECT_EQ(busy.ends.client.events.broken.size(), 1u);
  EXPECT_EQ(busy.ends.client.events.reads.size(), 2u);
  EXPECT_TRUE(busy.ends.api->misuse().empty());
  busy.ends.api->RestoreLink("client", "server");
}

// Tests a device that delivers neither completions nor events while all buffers
// are in use, so that no request can be sent to probe the device.
TEST(EndingTest, SoIsOneUnderWhichAllBuffersAreInUse) {
  Options options;
  options.completion_timeout = absl::Milliseconds(200);
  Ends ends(DeviceOptions(), options);
  ASSERT_TRUE(ends.Connect().ok());
  ends.api->CutLink("client", "server");
  while (Ends::Send(ends.client, "to be lost")) {
  }
  EXPECT_TRUE(ends.ExchangeUntil([&] {
    return !ends.client.events.broken.empty();
  })) << "nobody looked at the clock";
  ends.api->RestoreLink("client", "server");
}

// Tests a device that has completed all requests, while the peer grants no
// credits. The device must not count as failed.
TEST(EndingTest, PeerThatDoesNotPollIsNoBlackHole) {
  Options options;
  options.completion_timeout = absl::Milliseconds(200);
  for (int more_than_none : {1, 2, 3, 4, 100}) {
    Ends ends(DeviceOptions(), options);
    ASSERT_TRUE(ends.Connect().ok());
    for (int i = 0; i < more_than_none; ++i) {
      if (!Ends::Send(ends.client, "waits for the peer")) break;
    }
    const absl::Time over = absl::Now() + absl::Seconds(1);
    while (absl::Now() < over) ends.client->Poll();
    EXPECT_TRUE(ends.client.events.broken.empty()) << more_than_none;
  }
}

TEST(EndingTest, HoleThatClosesInTimeIsForgiven) {
  BusyEnds busy;
  busy.ends.api->CutLink("client", "server");
  busy.ends.api->Release();
  busy.ends.Exchange();
  EXPECT_TRUE(busy.ends.client.events.reads.empty());
  busy.ends.api->RestoreLink("client", "server");
  busy.ends.Exchange();
  EXPECT_TRUE(busy.ends.client.events.Succeeded(1));
  EXPECT_TRUE(busy.ends.client.events.Succeeded(2));
  EXPECT_EQ(busy.ends.server.events.packets.size(), 1u);
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
