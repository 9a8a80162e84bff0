// Tests requests that a server receives into memory of the program.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/transport/rpc/cutting_proxy.h"
#include "tests/transport/rpc/rpc_fixture.h"
#include "transport/memory/destinations.h"

namespace penstock {
namespace rpc {
namespace {

constexpr size_t kSize = 200 * 1000;

// The memory of a test, which a server offers for each call of "place".
class Place {
 public:
  std::shared_ptr<memory::Destinations> For(const Request& head) {
    ++heads_;
    if (head.method != "place") return nullptr;
    return std::make_shared<memory::Destinations>(
        std::vector<memory::Destination>{{memory_.data(), kSize}}, user_,
        memory::Destinations::Registered::kForOneMessage);
  }
  bool Is(const memory::Payload& payload) const {
    return payload.pieces().size() == 1 &&
           payload.pieces()[0].data == memory_.data();
  }
  bool IsUntouched() const {
    return std::count(memory_.begin(), memory_.end(), 'Z') ==
           static_cast<ptrdiff_t>(kSize);
  }
  // Returns true if a call may still write to the memory, or refers to it.
  bool IsUsed() const { return user_.use_count() > 1; }
  int heads() const { return heads_; }

 private:
  std::vector<uint8_t> memory_ = std::vector<uint8_t>(kSize, 'Z');
  const std::shared_ptr<const int> user_ = std::make_shared<const int>(0);
  std::atomic<int> heads_{0};
};

class PlacerTest : public RpcFixture {
 protected:
  // Starts a server that says where it has received the payload.
  void ServePlaces() {
    Serve(
        [place = place_](const std::shared_ptr<IncomingCall>& call) {
          const memory::Payload payload = call->TakePayload();
          EXPECT_EQ(ToString(payload), Bytes(payload.size()));
          call->Respond(
              Response{place->Is(payload) ? "there" : "elsewhere", {}});
        },
        [place = place_](const Request& head, const std::string& peer) {
          EXPECT_EQ(head.payload.size(), 0u);
          EXPECT_NE(peer, "");
          return place->For(head);
        });
  }
  static Request With(const std::string& method, const std::string& payload) {
    Request request;
    request.method = method;
    request.payload = Text(payload);
    return request;
  }
  static std::string Bytes(size_t size) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 / 3);
    return bytes;
  }

  const std::shared_ptr<Place> place_ = std::make_shared<Place>();
};

// Tests that the head and the payload may come with one receive.
TEST_P(PlacerTest, PayloadOfItsSizeIsReceivedThere) {
  ServePlaces();
  const std::unique_ptr<Client> client = Connect();
  for (int i = 0; i < 20; ++i) {
    const Result result = Call(client.get(), With("place", Bytes(kSize)));
    ASSERT_TRUE(result.ok()) << result.status();
    // Over shared memory, the payload is used where the client has it.
    EXPECT_EQ(result->metadata,
              GetParam() == Fabric::kTcp ? "there" : "elsewhere");
  }
  EXPECT_EQ(place_->heads(), 20);
}

TEST_P(PlacerTest, OtherPayloadsAreReceivedElsewhere) {
  ServePlaces();
  const std::unique_ptr<Client> client = Connect();
  for (const size_t size : {size_t{0}, size_t{100}, kSize - 1, kSize + 1}) {
    const Result result = Call(client.get(), With("place", Bytes(size)));
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->metadata, "elsewhere") << size;
  }
  const Result result = Call(client.get(), With("other", Bytes(kSize)));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->metadata, "elsewhere");
  EXPECT_TRUE(place_->IsUntouched());
}

// Tests that a client that stops in the middle of a payload cannot keep the
// memory in use.
TEST_P(PlacerTest, ServerThatDisconnectsNoLongerWritesThere) {
  if (GetParam() != Fabric::kTcp) GTEST_SKIP() << "tcp only";
  ServePlaces();
  CuttingProxy proxy;
  proxy.SetAndHold(server_->port(), kSize / 2);
  Client::Options options = ClientOptions();
  options.target = absl::StrCat("127.0.0.1:", proxy.port());
  const std::unique_ptr<Client> client = Connect(options);
  const auto result = Begin(client.get(), With("place", Bytes(kSize)));
  while (!place_->IsUsed()) std::this_thread::yield();
  server_->Disconnect("127.0.0.1:1");
  EXPECT_TRUE(place_->IsUsed()) << "another client";
  for (const Server::Description& client : server_->Describe()) {
    server_->Disconnect(client.peer);
  }
  EXPECT_FALSE(place_->IsUsed());
}

INSTANTIATE_TEST_SUITE_P(All, PlacerTest,
                         testing::Values(Fabric::kShm, Fabric::kTcp),
                         [](const auto& info) {
                           return FabricName(info.param);
                         });

}  // namespace
}  // namespace rpc
}  // namespace penstock
