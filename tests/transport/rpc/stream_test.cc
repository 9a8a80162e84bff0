// Tests calls with many messages in each direction.

#include <atomic>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "tests/transport/rpc/stream_fixture.h"
#include "transport/base/descriptors.h"
#include "transport/paths/path_relief.h"

namespace penstock {
namespace rpc {
namespace {

using StreamTest = StreamFixture;

TEST_P(StreamTest, MessagesGoBothWays) {
  ServeNothing();
  std::unique_ptr<Client> client = Connect();
  Request request = Named("method");
  request.metadata = "of the client";
  const Opened opened = Open(client.get(), std::move(request));
  opened.Write("one");  // there may be no connection yet
  const Incoming incoming = *incoming_.Get();
  EXPECT_EQ(incoming->request().method, "method");
  EXPECT_EQ(incoming->request().metadata, "of the client");
  incoming->SendMetadata("of the server");
  EXPECT_EQ(opened.metadata.Get(),
            absl::make_optional<std::string>("of the server"));
  incoming->Write(Text("first"), nullptr);
  incoming->Write(Text(""), nullptr);
  EXPECT_EQ(Read(incoming.get()), "one");
  opened.Write("");
  opened.stream->HalfClose();
  opened.Write("dropped");
  EXPECT_EQ(Read(incoming.get()), "");
  EXPECT_EQ(Read(incoming.get()), "no message");
  const std::string large(300000, 'l');
  incoming->Write(Text(large), nullptr);
  incoming->Finish({absl::OkStatus(), "trailing"});
  const absl::optional<End> end = opened.end.Get();
  ASSERT_TRUE(end.has_value());
  EXPECT_TRUE(end->status.ok()) << end->status;
  EXPECT_EQ(end->metadata, "trailing");
  // Ends the stream while messages are still unread.
  EXPECT_EQ(opened.Read(), "first");
  EXPECT_EQ(opened.Read(), "");
  EXPECT_TRUE(opened.Read() == large);
  EXPECT_EQ(opened.Read(), "no message");
  EXPECT_EQ(opened.accepted.Get(), absl::make_optional(true));
  EXPECT_EQ(opened.accepted.Get(), absl::make_optional(true));
  EXPECT_EQ(opened.accepted.Get(), absl::make_optional(false));
}

TEST_P(StreamTest, ErrorCarriesMetadataAndDetails) {
  ServeStreams([](const Incoming& stream) {
    absl::Status status = absl::AbortedError("text");
    status.SetPayload("details", absl::Cord(std::string("\0\xff", 2)));
    stream->Finish({status, "trailing"});
  });
  std::unique_ptr<Client> client = Connect();
  const Opened opened = Open(client.get(), Named("any"));
  const absl::optional<End> end = opened.end.Get();
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(end->status.GetPayload("details"), std::string("\0\xff", 2));
  EXPECT_EQ(end->metadata, "trailing");
  EXPECT_EQ(opened.Read(), "no message");
  EXPECT_EQ(opened.metadata.count(), 0);
}

TEST_P(StreamTest, WindowHoldsWritesBackUntilTheyAreRead) {
  ServeNothing();
  std::unique_ptr<Client> client = Connect();
  const Opened opened = Open(client.get(), Named("any"));
  const Incoming incoming = *incoming_.Get();
  constexpr size_t kWrites = 256;
  const auto text = std::make_shared<const std::string>(65536, 'x');
  for (size_t i = 0; i < kWrites; ++i) {
    opened.stream->Write(WithOwner(text), [accepted = opened.accepted](
                                              bool is) { accepted.Set(is); });
  }
  // Makes a call. The answer arrives after the reports of all writes that had
  // room.
  ASSERT_TRUE(Call(client.get(), Named("any")).ok());
  EXPECT_LT(opened.accepted.count(), kWrites);
  for (size_t i = 0; i < kWrites; ++i) {
    ASSERT_EQ(Read(incoming.get()).size(), 65536) << i;
  }
  for (size_t i = 0; i < kWrites; ++i) {
    ASSERT_EQ(opened.accepted.Get(), absl::make_optional(true)) << i;
  }
}

// Tests a peer that never reads. The other side must keep a bounded number of
// messages, even if the messages are tiny.
TEST_P(StreamTest, TinyMessagesAreBoundedToo) {
  ServeNothing();
  std::unique_ptr<Client> client = Connect();
  const Opened opened = Open(client.get(), Named("any"));
  const Incoming incoming = *incoming_.Get();
  // The number of messages, more than the window holds: each costs 65 bytes of
  // 4 MiB.
  constexpr size_t kWrites = 70000;
  const auto accepted = std::make_shared<std::atomic<size_t>>(0);
  for (size_t i = 0; i < kWrites; ++i) {
    opened.stream->Write(Text("x"), [accepted](bool) { ++*accepted; });
    incoming->Write(Text("x"), [accepted](bool) { ++*accepted; });
  }
  ASSERT_TRUE(Call(client.get(), Named("any")).ok());
  EXPECT_GT(*accepted, 0);
  EXPECT_LT(*accepted, 2 * kWrites);
}

// Tests that reads get messages in the order of the calls. One message has
// arrived before its read. Another message arrives before the loop reports the
// first one.
TEST_P(StreamTest, ReadsKeepTheirOrder) {
  ServeNothing();
  std::unique_ptr<Client> client = Connect();
  const Opened opened = Open(client.get(), Named("any"));
  const Incoming incoming = *incoming_.Get();
  incoming->Write(Text("first"), nullptr);
  // Makes a call, whose answer arrives after the message.
  ASSERT_TRUE(Call(client.get(), Named("any")).ok());
  const Awaited<bool> is_blocked;
  const Awaited<bool> goes_on;
  client->Call(Named(""), [is_blocked, goes_on](const Result&) {
    is_blocked.Set(true);
    goes_on.Get();
  });
  is_blocked.Get();
  const Awaited<std::string> got;
  for (int i = 0; i < 2; ++i) {
    opened.stream->Read([got](const absl::optional<memory::Payload>& message) {
      got.Set(ToString(*message));
    });
  }
  incoming->Write(Text("second"), nullptr);
  goes_on.Set(true);
  EXPECT_EQ(got.Get(), absl::make_optional<std::string>("first"));
  EXPECT_EQ(got.Get(), absl::make_optional<std::string>("second"));
}

// Tests that a stream continues over the other path when its path is lost.
TEST_P(StreamTest, LostPathLosesNoMessage) {
  ServeStreams(Echo);
  std::unique_ptr<Client> client = Connect();
  const Opened opened = Open(client.get(), Named("echo"));
  opened.Write("before");
  EXPECT_EQ(opened.Read(), "before");
  EXPECT_EQ(client->DescribePath()->fabric, FabricName(GetParam()));
  opened.Write("meanwhile");
  base::Descriptors none;
  none.limit = 100;
  paths::PathRelief::Get()->Relieve(none);
  const std::string large(500000, 'l');
  opened.Write(large);
  EXPECT_EQ(opened.Read(), "meanwhile");
  EXPECT_TRUE(opened.Read() == large);
  EXPECT_EQ(client->DescribePath()->fabric, "tcp");
  opened.stream->HalfClose();
  EXPECT_EQ(opened.Read(), "no message");
  EXPECT_EQ(opened.end.Get()->metadata, "bye");
}

TEST_P(StreamTest, LastMessageMayHalfClose) {
  ServeStreams(Echo);
  std::unique_ptr<Client> client = Connect();
  const Opened opened = Open(client.get(), Named("echo"));
  opened.stream->Write(Text(""), nullptr, /*is_last=*/true);
  opened.Write("late");
  EXPECT_EQ(opened.accepted.Get(), absl::make_optional(false));
  EXPECT_EQ(opened.Read(), "");
  EXPECT_EQ(opened.Read(), "no message");
  EXPECT_TRUE(opened.end.Get()->status.ok());
}

INSTANTIATE_TEST_SUITE_P(All, StreamTest,
                         testing::Values(Fabric::kShm, Fabric::kTcp),
                         [](const auto& info) {
                           return FabricName(info.param);
                         });

}  // namespace
}  // namespace rpc
}  // namespace penstock
