// Makes each library call fail once, at each of its calls, while two ends
// connect, send and close.

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/ends.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

struct Injection {
  const char* name;
  Call call;
  int error_number;
  // True if the failed call would have destroyed an object. The object then
  // remains, so the test cannot count objects.
  bool leaks = false;
};

class InjectedFailure : public testing::TestWithParam<Injection> {};

// Returns a payload with two pieces that are registered, and copied pieces
// around them.
memory::Payload SeveralParts() {
  memory::Payload payload;
  for (const size_t size : {300, 400 * 1000, 200, 300 * 1000, 100}) {
    const std::string text(size, static_cast<char>('a' + size % 26));
    payload.Append(Ends::PayloadOf(text).pieces()[0]);
  }
  return payload;
}

std::string TextOf(const memory::Payload& payload) {
  std::string text(payload.size(), '.');
  payload.CopyTo(reinterpret_cast<uint8_t*>(&text[0]));
  return text;
}

// Sends each kind of message, in both directions. Returns false if the
// connection was lost.
bool Talk(Ends* ends) {
  const memory::Payload payloads[] = {
      Ends::PayloadOf(std::string(20 * 1000, 's')),
      Ends::PayloadOf(std::string(600 * 1000, 'l')), SeveralParts()};
  for (auto sides : {std::make_pair(&ends->client, &ends->server),
                     std::make_pair(&ends->server, &ends->client)}) {
    End& from = *sides.first;
    End& to = *sides.second;
    const auto is_over = [&] {
      return !from.events.broken.empty() || !to.events.broken.empty();
    };
    if (!Ends::Send(from, "hello") && !is_over()) return false;
    ends->Exchange();
    for (const memory::Payload& payload : payloads) {
      absl::StatusOr<Exposure> exposure = from->Expose(payload, 100);
      if (!exposure.ok()) continue;
      const std::string got = ends->ReadAll(&to, exposure->region);
      // Allows a failed read. A read that succeeds must give the bytes.
      EXPECT_TRUE(got.empty() || got == TextOf(payload));
      from->Withdraw(exposure->region);
      ends->Exchange();
    }
    if (is_over()) return false;
  }
  return ends->client.events.packets.size() == 1 &&
         ends->server.events.packets.size() == 1;
}

// Expects that a lost connection is reported once, and at both sides.
void ExpectOrderlyEnd(Ends* ends) {
  for (End* end : {&ends->client, &ends->server}) {
    EXPECT_LE(end->events.broken.size(), 1u);
  }
  if (ends->client.events.broken.empty() &&
      ends->server.events.broken.empty()) {
    return;
  }
  EXPECT_TRUE(ends->ExchangeUntil([&] {
    return !ends->client.events.broken.empty() &&
           !ends->server.events.broken.empty();
  })) << "one side never learned of the end";
}

TEST_P(InjectedFailure, GivesAnErrorOrWorksAndLeavesNothingBehind) {
  const Injection injection = GetParam();
  bool came = true;
  int connected = 0, lost = 0;
  for (int after = 0; came && after < 400; ++after) {
    SCOPED_TRACE(absl::StrCat("failure after ", after));
    Options options;
    options.setup_timeout = absl::Seconds(2);
    Ends ends(DeviceOptions(), options);
    if (injection.leaks) ends.Forgive();
    ends.api->FailNext(injection.call, injection.error_number, after);
    const absl::Status status = ends.Connect();
    if (status.ok()) {
      ++connected;
      if (!Talk(&ends)) ++lost;
      ExpectOrderlyEnd(&ends);
    } else {
      EXPECT_FALSE(status.message().empty());
    }
    ends.Close();
    came = ends.api->failures_to_come() == 0;
    if (!injection.leaks) {
      EXPECT_EQ(ends.CountOfConnections(), 0);
    }
    if (!came) {
      EXPECT_TRUE(status.ok()) << "nothing had failed: " << status;
      continue;
    }
    // Connects again. An earlier failure must not prevent this.
    const absl::Status later = ends.Connect();
    EXPECT_TRUE(later.ok()) << later;
    if (later.ok()) {
      EXPECT_TRUE(Talk(&ends));
    }
    if (HasFailure()) return;
  }
  RecordProperty("connected", connected);
  RecordProperty("lost", lost);
}

const Injection kInjections[] = {
    {"QueryDevice", Call::kQueryDevice, EIO},
    {"QueryPort", Call::kQueryPort, EIO},
    {"QueryGidTable", Call::kQueryGidTable, EOPNOTSUPP},
    {"AllocPd", Call::kAllocPd, ENOMEM},
    {"RegMr", Call::kRegMr, ENOMEM},
    {"RegMrReadOnly", Call::kRegMr, EFAULT},
    {"AllocMw", Call::kAllocMw, ENOMEM},
    {"CreateCompChannel", Call::kCreateCompChannel, EMFILE},
    {"CreateCq", Call::kCreateCq, ENOMEM},
    {"ReqNotifyCq", Call::kReqNotifyCq, EIO},
    {"GetCqEvent", Call::kGetCqEvent, EAGAIN},
    {"PollCq", Call::kPollCq, EIO},
    {"CreateSrq", Call::kCreateSrq, ENOMEM},
    {"PostSrqRecv", Call::kPostSrqRecv, ENOMEM},
    {"PostSend", Call::kPostSend, ENOMEM},
    {"IbvCreateQp", Call::kIbvCreateQp, ENOMEM},
    {"ModifyQp", Call::kModifyQp, EINVAL},
    {"CreateEventChannel", Call::kCreateEventChannel, ENODEV},
    {"GetCmEvent", Call::kGetCmEvent, EINTR},
    {"CreateId", Call::kCreateId, EMFILE},
    {"BindAddr", Call::kBindAddr, EADDRINUSE},
    {"SetOption", Call::kSetOption, ENOSYS},
    {"Listen", Call::kListen, EADDRINUSE},
    {"ResolveAddr", Call::kResolveAddr, EADDRNOTAVAIL},
    {"ResolveRoute", Call::kResolveRoute, EINVAL},
    {"CreateQp", Call::kCreateQp, ENOMEM},
    {"Connect", Call::kConnect, EINVAL},
    {"Accept", Call::kAccept, EINVAL},
    {"Reject", Call::kReject, EINVAL},
    {"Disconnect", Call::kDisconnect, EINVAL},
    // Failures that cannot be repaired, but must not cause other failures.
    {"DeallocPd", Call::kDeallocPd, EBUSY, true},
    {"DeregMr", Call::kDeregMr, EBUSY, true},
    {"DeallocMw", Call::kDeallocMw, EBUSY, true},
    {"DestroyCompChannel", Call::kDestroyCompChannel, EBUSY, true},
    {"DestroyCq", Call::kDestroyCq, EBUSY, true},
    {"IbvDestroyQp", Call::kIbvDestroyQp, EBUSY, true},
    {"DestroySrq", Call::kDestroySrq, EBUSY, true},
    {"DestroyId", Call::kDestroyId, EIO, true},
};

INSTANTIATE_TEST_SUITE_P(Every, InjectedFailure, testing::ValuesIn(kInjections),
                         [](const testing::TestParamInfo<Injection>& info) {
                           return std::string(info.param.name);
                         });

// Repeats the test with a queue pair without room for inline data, which makes
// more calls.
TEST(InjectedFailureTest, DeviceWithoutInlineRoomTalks) {
  DeviceOptions device;
  device.max_inline = 0;
  Ends ends(device);
  ASSERT_TRUE(ends.Connect().ok());
  EXPECT_TRUE(Talk(&ends));
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
