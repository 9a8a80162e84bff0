// Tests a message of which a session reads some parts into GPU memory.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/gpu_test.h"
#include "transport/memory/destinations.h"
#include "transport/session/landing.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

class GpuLandingTest : public GpuTest {
 protected:
  std::unique_ptr<session::Landing> Read(
      const RemoteRegion& region,
      const std::shared_ptr<memory::Destinations>& destinations) {
    auto landing =
        session::Landing::Choose(region, destinations, client().endpoint.get())
            .value();
    const size_t chunk = client()->capabilities().read_chunk_bytes;
    for (size_t i = 0; i < landing->parts().size(); ++i) {
      const RemotePart& part = landing->parts()[i];
      for (size_t at = 0; at < part.length; at += chunk) {
        const size_t size = std::min<size_t>(chunk, part.length - at);
        client()->Read(part, at, landing->At(i, at, size), ++cookie_);
        ends_->Exchange();
        EXPECT_TRUE(client().events.Succeeded(cookie_));
      }
    }
    return landing;
  }
  static std::string TextOf(const memory::Payload& payload) {
    std::string text(payload.size(), '.');
    EXPECT_TRUE(
        payload.CopyFromAnywhereTo(reinterpret_cast<uint8_t*>(&text[0])).ok());
    return text;
  }
  // Passes a message of four parts, with GPU destinations for two of them.
  void Pass() {
    const std::string texts[] = {Text(1000, 1), Text(100 * 1000, 2),
                                 Text(200 * 1000, 3), Text(300 * 1000, 4)};
    const memory::Payload sent =
        Join({Ends::PayloadOf(texts[0]).pieces()[0], gpu_.Put(texts[1]),
              gpu_.Put(texts[2]), Ends::PayloadOf(texts[3]).pieces()[0]});
    const Exposure exposure = server()->Expose(sent, 100).value();
    into_ = {gpu_.Put(Text(300 * 1000)), gpu_.Put(Text(100 * 1000))};
    std::vector<memory::Destination> ranges;
    for (const memory::Bytes& into : into_) {
      ranges.push_back({const_cast<uint8_t*>(into.data), into.size, &gpu_});
    }
    const auto landing = Read(
        exposure.region,
        std::make_shared<memory::Destinations>(
            ranges, nullptr, memory::Destinations::Registered::kForOneMessage));
    message_ = landing->Message();
    EXPECT_TRUE(TextOf(message_) == texts[0] + texts[1] + texts[2] + texts[3]);
    server()->Withdraw(exposure.region);
    ends_->Exchange();
  }

  std::vector<memory::Bytes> into_;
  memory::Payload message_;
};

TEST_F(GpuLandingTest, PiecesSayWhatReachesThem) {
  gpu_.NeedFlushes();
  Open();
  Pass();
  int of_gpu = 0;
  for (const memory::Bytes& piece : message_.pieces()) {
    const bool lies_there =
        piece.data == into_[0].data || piece.data == into_[1].data;
    EXPECT_EQ(piece.device != nullptr, lies_there);
    if (lies_there) ++of_gpu;
  }
  EXPECT_EQ(of_gpu, 2);
}

TEST_F(GpuLandingTest, WithoutGpuDirectAllOfItIsOnTheHost) {
  DeviceOptions device;
  device.has_dmabuf = false;
  Open(device);
  Pass();
  EXPECT_TRUE(message_.on_host());
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
