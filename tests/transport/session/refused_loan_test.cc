// Tests messages that the fast path refuses to expose. The lifeline, an
// endpoint of the tcp fabric, pushes such messages.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/tcp/pipe.h"
#include "tests/transport/session/session_test_util.h"
#include "transport/fabric/fake/link.h"
#include "transport/fabric/tcp/endpoint.h"
#include "transport/fabric/tcp/framing.h"
#include "transport/metrics/histogram.h"
#include "transport/metrics/labels.h"

namespace penstock {
namespace session {
namespace {

using fabric::tcp::Pipe;
using fabric::tcp::UnitType;
using Units = std::vector<UnitType>;

absl::Span<const uint8_t> AsSpan(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Returns the types of the units in `bytes`.
Units TypesOf(const std::string& bytes) {
  Units types;
  for (size_t at = 0; at < bytes.size();) {
    const auto unit = fabric::tcp::ParseUnitHeader(AsSpan(bytes).data() + at);
    EXPECT_TRUE(unit.ok()) << unit.status();
    if (!unit.ok()) return types;
    types.push_back(unit->type);
    at += fabric::tcp::kUnitHeaderBytes + unit->length;
  }
  return types;
}

// Adds a clock, because the session times announced messages only with one.
Config WithClock(Config config) {
  config.tuning.now_ns = [] {
    static uint64_t now_ns = 0;
    return now_ns += 1000;
  };
  return config;
}

uint64_t CountOf(const metrics::Histogram& histogram) {
  uint64_t count = 0;
  for (int i = 0; i < metrics::Histogram::kBuckets; ++i) {
    count += histogram.bucket(i);
  }
  return count;
}

// One side: a session, its lifeline, and the bytes that the lifeline writes.
struct End {
  explicit End(const Config& config)
      : lifeline(new fabric::tcp::Endpoint(&pipe)),
        peer(config, absl::WrapUnique(lifeline)) {}

  Pipe pipe;
  fabric::tcp::Endpoint* const lifeline;  // the session's
  Peer peer;
};

class RefusedLoanTest : public testing::Test {
 protected:
  RefusedLoanTest()
      : client_(WithClock(ClientConfig())), server_(ServerConfig()) {
    client_.peer->Start();
    server_.peer->Start();
    RunLifeline();
    client_.peer->path().Add("shm", fast_.Take(Side::kA));
    server_.peer->path().Add("shm", fast_.Take(Side::kB));
    RunLifeline();
    client_.peer.Open(1);
    client_.peer.Flush();
    server_.peer.PollAll();
    server_.peer.stream(1).Take();
  }

  // Moves what `from` has written to `to`. Returns the types of the units.
  Units Move(End* from, End* to) {
    std::string bytes;
    while (from->pipe.writing()) {
      bytes += from->pipe.Take();
      from->pipe.Finish();
      from->lifeline->OnWritten();
    }
    to->lifeline->OnBytes(AsSpan(bytes));
    to->peer.Flush();
    return TypesOf(bytes);
  }
  // Delivers to each side what the other side has written to the lifeline,
  // until neither writes more.
  void RunLifeline() {
    client_.peer.Flush();
    server_.peer.Flush();
    while (client_.pipe.writing() || server_.pipe.writing()) {
      Move(&client_, &server_);
      Move(&server_, &client_);
    }
  }
  void Refuse() { fast_.FailNthExpose(Side::kA, 1); }
  void Send(const std::string& message) {
    client_.peer.Send(1, message);
    client_.peer.Flush();
  }
  Lines Received() { return server_.peer.stream(1).Take(); }

  fabric::fake::Link fast_;
  End client_;
  End server_;
};

TEST_F(RefusedLoanTest, IsPushedWithoutARequest) {
  const std::string message = Letters(100 * 1000);
  Refuse();
  Send(message);
  server_.peer.PollAll();
  EXPECT_EQ(Move(&client_, &server_),
            (Units{UnitType::kDoorbell, UnitType::kPush}));
  EXPECT_EQ(Received(), Lines{MessageLine(message)});
  EXPECT_FALSE(server_.pipe.writing()) << "the server requested something";
}

// Tests an announcement on the fast path that arrives after the lifeline's
// bytes.
TEST_F(RefusedLoanTest, MayBeReadFirstOnTheLifeline) {
  const std::string message = Letters(100 * 1000);
  Refuse();
  Send(message);
  Move(&client_, &server_);
  EXPECT_EQ(Received(), Lines{MessageLine(message)});
  EXPECT_FALSE(server_.pipe.writing()) << "the server requested something";
}

TEST_F(RefusedLoanTest, IsRequestedBeyondTheFirstChunk) {
  const std::string message = Letters(3 * fabric::tcp::kChunkBytes);
  Refuse();
  Send(message);
  Move(&client_, &server_);
  RunLifeline();
  EXPECT_EQ(Received(), Lines{MessageLine(message)});
}

TEST_F(RefusedLoanTest, CountsAsAMessageOverTcp) {
  Refuse();
  Send(Letters(100 * 1000));
  Move(&client_, &server_);
  RunLifeline();
  server_.peer.stream(1).Take();
  fast_.StepAll();
  RunLifeline();
  const auto& announced = client_.peer->counters().announced;
  EXPECT_EQ(CountOf(announced[static_cast<int>(metrics::Fabric::kTcp)]), 1u);
  EXPECT_EQ(CountOf(announced[static_cast<int>(metrics::Fabric::kShm)]), 0u);
}

TEST_F(RefusedLoanTest, IsPushedBetweenLoans) {
  Lines expected;
  for (uint32_t i = 0; i < 6; ++i) {
    const std::string message = Letters(50 * 1000, i);
    expected.push_back(MessageLine(message));
    if (i % 2 == 0) Refuse();
    Send(message);
  }
  fast_.StepAll();
  Move(&client_, &server_);
  fast_.StepAll();
  RunLifeline();
  EXPECT_EQ(Received(), expected);
}

TEST_F(RefusedLoanTest, DoesNotConcernMessagesThatAreLent) {
  const std::string message = Letters(100 * 1000);
  Send(message);
  server_.peer.PollAll();
  fast_.StepAll();
  EXPECT_EQ(Received(), Lines{MessageLine(message)});
  EXPECT_EQ(Move(&client_, &server_), Units{});
}

// Tests a peer that requests bytes that were pushed before the peer knew the
// announcement.
TEST_F(RefusedLoanTest, SurvivesTheLossOfTheFastPath) {
  const std::string message = Letters(100 * 1000);
  Refuse();
  client_.peer.Send(1, message);
  fast_.Drop();
  client_.peer.Flush();
  fast_.StepAll();
  client_.peer.Flush();
  server_.peer.Flush();
  RunLifeline();
  EXPECT_EQ(Received(), Lines{MessageLine(message)});
}

}  // namespace
}  // namespace session
}  // namespace penstock
