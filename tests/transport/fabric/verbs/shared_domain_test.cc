// Tests two connections between the same devices: which objects they share, and
// that no connection reaches the other's memory.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/fabric/conformance/verbs_pair.h"
#include "tests/transport/fabric/verbs/ends.h"
#include "transport/memory/stable_memory.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

constexpr size_t kLarge = 600 * 1000;  // larger than a payload that is copied

class SharedDomainTest : public testing::Test {
 protected:
  ~SharedDomainTest() override { CloseSecond(); }

  void Open(DeviceOptions device = {}, Options options = {}) {
    CloseSecond();
    ends_.reset();
    ends_ = std::make_unique<Ends>(device, options);
    ASSERT_TRUE(ends_->Connect().ok());
  }
  void OpenSecond() {
    absl::StatusOr<EndpointPair> pair =
        ConnectPair(ends_->listening.get(), ends_->connecting.get());
    ASSERT_TRUE(pair.ok()) << pair.status();
    server_.endpoint = std::move(pair->first);
    client_.endpoint = std::move(pair->second);
    server_->Start(&server_.events);
    client_->Start(&client_.events);
  }
  void CloseSecond() {
    server_ = End();
    client_ = End();
  }
  // Exchanges the messages of both connections.
  void Exchange() {
    for (bool any = true; any;) {
      ends_->Exchange();
      any = false;
      for (End* end : {&server_, &client_}) {
        while (end->endpoint != nullptr && (*end)->Poll()) any = true;
      }
    }
  }
  // Returns true if the client of the second connection can read the region.
  bool SecondReads(const RemoteRegion& region) {
    char into[64];
    client_.events.within_read = true;
    client_->Read(region[0], 0, {reinterpret_cast<uint8_t*>(into), sizeof into},
                  ++cookie_);
    client_.events.within_read = false;
    Exchange();
    return client_.events.Succeeded(cookie_);
  }
  std::string FirstReads(const RemoteRegion& region) {
    return ends_->ReadAll(&ends_->client, region);
  }
  Counts counts() { return ends_->api->counts(); }

  std::unique_ptr<Ends> ends_;
  End server_, client_;
  uint64_t cookie_ = 0;
};

TEST_F(SharedDomainTest, ConnectionsOfADeviceShareOne) {
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_EQ(counts().pds, 2) << "one of each device";
  ASSERT_NO_FATAL_FAILURE(OpenSecond());
  EXPECT_EQ(counts().pds, 2);
  EXPECT_EQ(counts().qps, 4);
  CloseSecond();
  EXPECT_EQ(counts().pds, 2);
  ends_->Close();
  EXPECT_EQ(counts().pds, 0);
}

TEST_F(SharedDomainTest, WithoutWindowsEachHasItsOwn) {
  DeviceOptions device;
  device.enforce_window_range = false;
  ASSERT_NO_FATAL_FAILURE(Open(device));
  ASSERT_NO_FATAL_FAILURE(OpenSecond());
  EXPECT_EQ(counts().pds, 4);
}

TEST_F(SharedDomainTest, KeyOfOneIsRefusedToTheOther) {
  for (const bool with_windows : {true, false}) {
    for (const size_t size : {size_t{1000}, kLarge}) {
      DeviceOptions device;
      device.enforce_window_range = with_windows;
      ASSERT_NO_FATAL_FAILURE(Open(device));
      ASSERT_NO_FATAL_FAILURE(OpenSecond());
      const std::string text(size, 'x');
      const Exposure exposure =
          ends_->server->Expose(Ends::PayloadOf(text), 1).value();
      EXPECT_FALSE(SecondReads(exposure.region));
      EXPECT_EQ(client_.events.broken.size(), 1u);
      EXPECT_EQ(FirstReads(exposure.region), text) << "which goes on";
      EXPECT_TRUE(ends_->client.events.broken.empty());
    }
  }
}

// Tests a payload that many peers read. The payload must be registered only
// once.
TEST_F(SharedDomainTest, PayloadForBothIsRegisteredOnce) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(OpenSecond());
  const memory::Payload payload = Ends::PayloadOf(std::string(kLarge, 'x'));
  const int before = counts().mrs;
  const Exposure first = ends_->server->Expose(payload, 1).value();
  const Exposure second = server_->Expose(payload, 1).value();
  EXPECT_EQ(counts().mrs, before + 1);
  EXPECT_NE(first.region[0].key, second.region[0].key);
  EXPECT_TRUE(SecondReads(second.region));
  server_->Withdraw(second.region);
  Exchange();
  EXPECT_EQ(FirstReads(first.region), std::string(kLarge, 'x'));
}

TEST_F(SharedDomainTest, WhatOneReceivedTheOtherSendsOnAsItLies) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(OpenSecond());
  const memory::Block block = ends_->server->AllocateForRead(kLarge).value();
  const int before = counts().mrs;
  const Exposure exposure =
      server_->Expose(memory::Payload(block.AsBytes()), 1).value();
  EXPECT_EQ(exposure.stable.pieces()[0].data, block.data.get());
  EXPECT_EQ(counts().mrs, before);
  EXPECT_TRUE(SecondReads(exposure.region));
}

TEST_F(SharedDomainTest, OneThatHoldsItsShareLeavesTheOthersTheirs) {
  Options options;
  options.read_bytes = options.exposed_bytes = 1 << 20;
  ASSERT_NO_FATAL_FAILURE(Open(DeviceOptions(), options));
  ASSERT_NO_FATAL_FAILURE(OpenSecond());
  const auto is_of_pool = [](const memory::Block& block) {
    return memory::FindStable(block.data.get(), 1) == nullptr;
  };
  const memory::Block held = ends_->server->AllocateForRead(kLarge).value();
  EXPECT_TRUE(is_of_pool(held));
  EXPECT_FALSE(is_of_pool(ends_->server->AllocateForRead(kLarge).value()))
      << "the heap's";
  EXPECT_TRUE(is_of_pool(server_->AllocateForRead(kLarge).value()));
}

TEST_F(SharedDomainTest, EndOfOneLeavesTheOther) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(OpenSecond());
  const memory::Payload payload = Ends::PayloadOf(std::string(kLarge, 'x'));
  const Exposure of_first = ends_->server->Expose(payload, 1).value();
  (void)server_->Expose(payload, 1).value();
  (void)server_->Expose(Ends::PayloadOf("small"), 1).value();
  ASSERT_TRUE(Ends::Send(client_, "is under way"));
  CloseSecond();
  EXPECT_EQ(FirstReads(of_first.region), std::string(kLarge, 'x'));
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(Ends::Send(ends_->client, "x"));
    ends_->Exchange();
  }
  EXPECT_EQ(ends_->server.events.packets.size(), 40u);
}

TEST_F(SharedDomainTest, ConnectionsThatComeAndGoUseTheSameMemory) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(OpenSecond());
  const uint64_t before = counts().registered_bytes;
  for (int i = 0; i < 20; ++i) {
    CloseSecond();
    ends_->Exchange();
    ASSERT_NO_FATAL_FAILURE(OpenSecond());
  }
  EXPECT_EQ(counts().registered_bytes, before);
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
