// Tests the events that a session adds to the trace of its process.

#include "transport/metrics/trace.h"

#include <cstdint>
#include <map>

#include "gtest/gtest.h"
#include "tests/transport/session/session_test_util.h"

namespace penstock {
namespace session {
namespace {

using metrics::TraceEvent;

// Tests the trace in a program of its own, because the trace belongs to the
// process.
TEST_F(SessionTest, EachEventOfTheTraceEndsAfterItsBegin) {
  metrics::Trace* const trace = metrics::Trace::Begin();
  uint64_t now_ns = 0;
  client_config_.tuning.now_ns = [&] { return ++now_ns; };
  server_config_.tuning.now_ns = [&] { return ++now_ns; };
  OpenWithPath();
  client_->Open(1);
  client_->Send(1, Letters(1 << 20));
  Run();
  (*client_)->output().SendHalfClose(1);
  (*server_)->output().SendTrailers(1, "done");
  Run();
  (*client_)->streams().Detach(1);
  (*server_)->streams().Detach(1);
  std::map<TraceEvent::Kind, int> seen;
  for (const TraceEvent& event : trace->Take()) {
    EXPECT_GT(event.begun_ns, 0u);
    EXPECT_GT(event.ended_ns, event.begun_ns);
    EXPECT_EQ(event.stream, 1u);
    if (event.kind != TraceEvent::Kind::kStream) {
      EXPECT_EQ(event.fabric, metrics::Fabric::kShm);
    }
    ++seen[event.kind];
  }
  EXPECT_EQ(seen[TraceEvent::Kind::kStream], 2);  // one stream at each side
  EXPECT_EQ(seen[TraceEvent::Kind::kAnnounced], 1);
  EXPECT_EQ(seen[TraceEvent::Kind::kRead], 1);
}

}  // namespace
}  // namespace session
}  // namespace penstock
