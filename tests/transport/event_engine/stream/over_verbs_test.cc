// Tests streams of TLS over simulated RDMA devices that fail at any time.

#include <cstdint>
#include <memory>
#include <random>

#include "gtest/gtest.h"
#include "tests/transport/event_engine/stream/ends.h"
#include "tests/transport/fabric/conformance/verbs_pair.h"
#include "tests/transport/fabric/verbs/fake/fake_verbs.h"
#include "transport/fabric/verbs/fabric.h"
#include "transport/fabric/verbs/options.h"

namespace penstock {
namespace event_engine {
namespace {

using fabric::verbs::FakeVerbs;
using fabric::verbs::VerbsFabric;

// Two devices, and a fabric on each.
class Network {
 public:
  Network() {
    for (size_t i = 0; i < 2; ++i) {
      fabric::verbs::DeviceOptions device;
      device.name = i == 0 ? "client" : "server";
      device.addresses = {i == 0 ? "10.0.0.1" : "10.0.0.2"};
      api->AddDevice(device);
      fabric::verbs::Options options;
      options.addresses = device.addresses;
      fabrics_[i] = new VerbsFabric(options, api);
    }
  }
  absl::StatusOr<fabric::verbs::EndpointPair> Connect() {
    return fabric::verbs::ConnectPair(fabrics_[1], fabrics_[0]);
  }

  // Never destroyed, because the event loop may still use them.
  FakeVerbs* const api = new FakeVerbs;

 private:
  VerbsFabric* fabrics_[2];
};

struct VerbsPair : Pair {
  explicit VerbsPair(Network* network) : network(network) {
    for (End& end : ends) end.FollowRecords();
  }

  bool HasLink() override { return has_link; }
  void NewLink() override {
    network->api->Release();
    auto made = network->Connect();
    ASSERT_TRUE(made.ok()) << made.status();
    waiting[1] = std::move(made->first);
    waiting[0] = std::move(made->second);
    has_link = true;
    ++links;
    network->api->Hold();
  }
  // Fails the next packet of either side, and perhaps an end.
  void LoseBetweenHosts(
      const std::function<uint32_t(uint32_t)>& below) override {
    if (!has_link || below(3) != 0) return;
    const uint32_t side = below(2);
    if (below(3) == 0) {
      ends[side].stream.LosePath(absl::UnavailableError("the test"));
      ends[side].Settle();
    } else {
      network->api->CompleteNext(IBV_WR_SEND, IBV_WC_RETRY_EXC_ERR);
    }
    has_link = false;
  }

  Network* const network;
  bool has_link = false;
  int links = 0;
};

// Returns the number of paths that were used.
int RunAtRandom(uint32_t seed, Network* network) {
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto below = [&random](uint32_t limit) { return random() % limit; };
  VerbsPair pair(network);
  for (int step = 0; step < 300; ++step) {
    pair.Step(below);
    for (uint32_t i = below(4); i > 0; --i) network->api->Step();
    EXPECT_TRUE(pair.status().ok()) << "step " << step << ": " << pair.status();
    if (testing::Test::HasFailure()) return pair.links;
  }
  network->api->Release();
  EXPECT_TRUE(pair.Ends());
  EXPECT_TRUE(pair.status().ok()) << pair.status();
  return pair.links;
}

TEST(OverVerbsTest, AnyOrderOfMovesAndLossesKeepsTheBytes) {
  Network network;
  int links = 0;
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    links += RunAtRandom(seed, &network);
    if (HasFailure()) return;
  }
  EXPECT_GT(links, 80) << "the paths are lost too rarely";
}

}  // namespace
}  // namespace event_engine
}  // namespace penstock
