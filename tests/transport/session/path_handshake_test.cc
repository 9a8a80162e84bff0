#include "transport/session/path_handshake.h"

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace penstock {
namespace session {
namespace {

using State = PathHandshake::State;

enum class Event {
  kLocalReady,
  kLocalLost,
  kNothingToTry,
  kRetry,
  kPeerReady,
  kPeerLost,
  kPeerWanted
};

std::string Text(const PathHandshake::Actions& actions) {
  std::vector<std::string> names;
  if (actions.drop) names.push_back("drop");
  if (actions.send_lost) names.push_back("send lost");
  if (actions.send_ready) names.push_back("send ready");
  if (actions.use) names.push_back("use");
  if (actions.report) names.push_back("report");
  if (actions.send_wanted) names.push_back("send wanted");
  if (actions.listen) names.push_back("listen");
  return absl::StrJoin(names, ", ");
}

// Handles an event of the current epoch, or, for PeerWanted, of the next epoch.
std::string Do(Event event, PathHandshake* handshake) {
  PathHandshake::Actions actions;
  const uint32_t epoch = handshake->epoch();
  switch (event) {
    case Event::kLocalReady:
      return Text(handshake->OnLocalReady());
    case Event::kLocalLost:
      return Text(handshake->OnLocalLost());
    case Event::kNothingToTry:
      return Text(handshake->OnNothingToTry());
    case Event::kRetry:
      return Text(handshake->Retry());
    case Event::kPeerReady:
      EXPECT_TRUE(handshake->OnPeerReady(epoch, &actions).ok());
      break;
    case Event::kPeerLost:
      EXPECT_TRUE(handshake->OnPeerLost(epoch, &actions).ok());
      break;
    case Event::kPeerWanted:
      if (!handshake->OnPeerWanted(epoch + 1, &actions).ok()) return "error";
      break;
  }
  return Text(actions);
}

PathHandshake In(State state) {
  PathHandshake handshake;
  switch (state) {
    case State::kTrying:
      break;
    case State::kReadyHere:
      Do(Event::kLocalReady, &handshake);
      break;
    case State::kReadyThere:
      Do(Event::kPeerReady, &handshake);
      break;
    case State::kInUse:
      Do(Event::kLocalReady, &handshake);
      Do(Event::kPeerReady, &handshake);
      break;
    case State::kLostHere:
      Do(Event::kLocalLost, &handshake);
      break;
    case State::kSettled:
      Do(Event::kNothingToTry, &handshake);
      break;
  }
  EXPECT_EQ(handshake.state(), state);
  return handshake;
}

struct Row {
  State state;
  Event event;
  const char* actions;
  State next;
};

// Tests every state with every event. The expected transitions are those of the
// header's table. An event without a line in that table has no effect.
constexpr Row kTable[] = {
    {State::kTrying, Event::kLocalReady, "send ready", State::kReadyHere},
    {State::kTrying, Event::kLocalLost, "drop, send lost", State::kLostHere},
    {State::kTrying, Event::kNothingToTry, "report", State::kSettled},
    {State::kTrying, Event::kRetry, "", State::kTrying},
    {State::kTrying, Event::kPeerReady, "", State::kReadyThere},
    {State::kTrying, Event::kPeerLost, "drop, send lost, report",
     State::kSettled},
    {State::kTrying, Event::kPeerWanted, "error", State::kTrying},

    {State::kReadyHere, Event::kLocalReady, "", State::kReadyHere},
    {State::kReadyHere, Event::kLocalLost, "drop, send lost", State::kLostHere},
    {State::kReadyHere, Event::kNothingToTry, "", State::kReadyHere},
    {State::kReadyHere, Event::kRetry, "", State::kReadyHere},
    {State::kReadyHere, Event::kPeerReady, "use", State::kInUse},
    {State::kReadyHere, Event::kPeerLost, "drop, send lost, report",
     State::kSettled},
    {State::kReadyHere, Event::kPeerWanted, "error", State::kReadyHere},

    {State::kReadyThere, Event::kLocalReady, "send ready, use", State::kInUse},
    {State::kReadyThere, Event::kLocalLost, "drop, send lost",
     State::kLostHere},
    {State::kReadyThere, Event::kNothingToTry, "", State::kReadyThere},
    {State::kReadyThere, Event::kRetry, "", State::kReadyThere},
    {State::kReadyThere, Event::kPeerReady, "", State::kReadyThere},
    {State::kReadyThere, Event::kPeerLost, "drop, send lost, report",
     State::kSettled},
    {State::kReadyThere, Event::kPeerWanted, "error", State::kReadyThere},

    {State::kInUse, Event::kLocalReady, "", State::kInUse},
    {State::kInUse, Event::kLocalLost, "drop, send lost", State::kLostHere},
    {State::kInUse, Event::kNothingToTry, "", State::kInUse},
    {State::kInUse, Event::kRetry, "", State::kInUse},
    {State::kInUse, Event::kPeerReady, "", State::kInUse},
    {State::kInUse, Event::kPeerLost, "drop, send lost, report",
     State::kSettled},
    {State::kInUse, Event::kPeerWanted, "error", State::kInUse},

    {State::kLostHere, Event::kLocalReady, "", State::kLostHere},
    {State::kLostHere, Event::kLocalLost, "", State::kLostHere},
    {State::kLostHere, Event::kNothingToTry, "report", State::kSettled},
    {State::kLostHere, Event::kRetry, "", State::kLostHere},
    {State::kLostHere, Event::kPeerReady, "", State::kLostHere},
    {State::kLostHere, Event::kPeerLost, "report", State::kSettled},
    {State::kLostHere, Event::kPeerWanted, "error", State::kLostHere},

    {State::kSettled, Event::kLocalReady, "", State::kSettled},
    {State::kSettled, Event::kLocalLost, "", State::kSettled},
    {State::kSettled, Event::kNothingToTry, "", State::kSettled},
    {State::kSettled, Event::kRetry, "send wanted", State::kTrying},
    {State::kSettled, Event::kPeerReady, "", State::kSettled},
    {State::kSettled, Event::kPeerLost, "", State::kSettled},
    {State::kSettled, Event::kPeerWanted, "listen", State::kTrying},
};

TEST(PathHandshake, EveryStateAndEvent) {
  for (const Row& row : kTable) {
    PathHandshake handshake = In(row.state);
    const std::string where =
        "state " + std::to_string(static_cast<int>(row.state)) + ", event " +
        std::to_string(static_cast<int>(row.event));
    EXPECT_EQ(Do(row.event, &handshake), row.actions) << where;
    EXPECT_EQ(handshake.state(), row.next) << where;
  }
}

TEST(PathHandshake, TheTableIsComplete) {
  EXPECT_EQ(sizeof kTable / sizeof kTable[0], 6u * 7u);
}

TEST(PathHandshake, RetryBeginsAnEpochOnBothSides) {
  PathHandshake client = In(State::kSettled);
  PathHandshake server = In(State::kSettled);
  client.Retry();
  EXPECT_EQ(client.epoch(), 2u);
  PathHandshake::Actions actions;
  EXPECT_TRUE(server.OnPeerWanted(2, &actions).ok());
  EXPECT_EQ(server.epoch(), 2u);
}

TEST(PathHandshake, EarlierEpochsChangeNothing) {
  for (bool lost : {true, false}) {
    PathHandshake handshake = In(State::kSettled);
    handshake.Retry();
    PathHandshake::Actions actions;
    EXPECT_TRUE((lost ? handshake.OnPeerLost(1, &actions)
                      : handshake.OnPeerReady(1, &actions))
                    .ok());
    EXPECT_EQ(Text(actions), "");
    EXPECT_EQ(handshake.state(), State::kTrying);
  }
}

TEST(PathHandshake, EpochsToComeAreAnError) {
  PathHandshake handshake;
  PathHandshake::Actions actions;
  EXPECT_TRUE(absl::IsInvalidArgument(handshake.OnPeerReady(2, &actions)));
  EXPECT_TRUE(absl::IsInvalidArgument(handshake.OnPeerLost(2, &actions)));
  PathHandshake settled = In(State::kSettled);
  EXPECT_TRUE(absl::IsInvalidArgument(settled.OnPeerWanted(3, &actions)));
}

}  // namespace
}  // namespace session
}  // namespace penstock
