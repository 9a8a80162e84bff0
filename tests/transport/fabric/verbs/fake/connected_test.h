// The fixture of tests of FakeVerbs: two connected queue pairs.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_CONNECTED_TEST_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_CONNECTED_TEST_H_

#include <poll.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/fake/fake_pair.h"

namespace penstock {
namespace fabric {
namespace verbs {

inline bool IsReadable(int fd) {
  pollfd entry = {fd, POLLIN, 0};
  return poll(&entry, 1, 0) == 1;
}

inline uint64_t At(const FakeSide& side, uint32_t offset = 0) {
  return reinterpret_cast<uint64_t>(side.memory.data()) + offset;
}

class ConnectedTest : public testing::Test {
 protected:
  void SetUp() override { Start({}, {}); }
  void Start(NetworkOptions network, DeviceOptions device,
             rdma_conn_param param = FakePair::Params()) {
    pair_ = nullptr;
    pair_ = std::make_unique<FakePair>(network, device);
    pair_->Connect(param);
    client_ = &pair_->client;
    server_ = &pair_->server;
  }
  // Returns the only completion of `side`. Fails the test if there is not
  // exactly one.
  ibv_wc Only(FakeSide* side) {
    const std::vector<ibv_wc> completions = pair_->Poll(side);
    EXPECT_EQ(completions.size(), 1u);
    return completions.empty() ? ibv_wc() : completions[0];
  }
  int AsyncEvent(FakeSide* side) {
    if (!IsReadable(side->device->async_fd)) return -1;
    ibv_async_event event;
    EXPECT_EQ(pair_->verbs.GetAsyncEvent(side->device, &event), 0);
    pair_->verbs.AckAsyncEvent(&event);
    return event.event_type;
  }

  std::unique_ptr<FakePair> pair_;
  FakeSide* client_ = nullptr;
  FakeSide* server_ = nullptr;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_CONNECTED_TEST_H_
