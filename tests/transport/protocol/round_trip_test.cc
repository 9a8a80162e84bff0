// Tests both sides: an outbox packs frames, and the other side's order and
// reassembler unpack them, even if frames are lost, repeated or late.

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "transport/protocol/outbox.h"
#include "transport/protocol/reassembler.h"
#include "transport/protocol/receive_order.h"
#include "transport/protocol/send_log.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace protocol {
namespace {

class Receiver {
 public:
  void OnBatch(const std::string& bytes) {
    absl::Span<const uint8_t> rest(
        reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    while (!rest.empty()) {
      absl::StatusOr<wire::Frame> frame = wire::TakeFrame(&rest);
      ASSERT_TRUE(frame.ok()) << frame.status();
      ReceiveOrder::Verdict verdict;
      ASSERT_TRUE(order.Accept(*frame, &verdict).ok());
      if (verdict != ReceiveOrder::Verdict::kDeliver) continue;
      Deliver(frame->header, frame->payload);
      ReceiveOrder::HeldFrame held;
      while (order.TakeNext(&held)) {
        Deliver(held.header,
                {reinterpret_cast<const uint8_t*>(held.payload.data()),
                 held.payload.size()});
      }
    }
  }

  ReceiveOrder order;
  std::vector<std::string> payloads;

 private:
  void Deliver(const wire::FrameHeader& header,
               absl::Span<const uint8_t> payload) {
    bool whole = false;
    ASSERT_TRUE(reassembler_.Accept(header, payload, &whole).ok());
    if (!whole) return;
    if (reassembler_.was_fragmented()) payload = reassembler_.joined();
    payloads.emplace_back(payload.begin(), payload.end());
  }
  Reassembler reassembler_;
};

class RoundTrip : public ::testing::TestWithParam<uint32_t> {};

TEST_P(RoundTrip, NothingIsLostRepeatedOrReordered) {
  std::mt19937 random(GetParam());
  base::BufferPool buffers;
  Outbox outbox(64 * 1024, &buffers);
  SendLog log(&buffers);
  Receiver receiver;
  std::vector<std::string> sent;
  std::vector<std::string> under_way;
  for (int step = 0; step < 400; ++step) {
    switch (random() % 4) {
      case 0: {  // adds a frame
        std::string payload(random() % (random() % 8 == 0 ? 90000 : 2000),
                            static_cast<char>(random()));
        wire::FrameHeader header;
        header.type = wire::FrameType::kHeaders;
        outbox.Add(header, payload, 0);
        sent.push_back(std::move(payload));
        break;
      }
      case 1:  // a batch leaves, over a path that may lose it
        if (outbox.empty()) break;
        log.Add(outbox.front().last_sequence, outbox.front().bytes);
        under_way.push_back(outbox.Pop().bytes);
        break;
      case 2:  // any batch arrives, and may arrive again
        if (under_way.empty()) break;
        std::swap(under_way[random() % under_way.size()], under_way.back());
        receiver.OnBatch(under_way.back());
        if (random() % 3 != 0) under_way.pop_back();
        break;
      // Delivers an acknowledgement, or loses the path with everything on it.
      case 3:
        if (random() % 8 != 0) {
          log.Acknowledge(receiver.order.delivered());
          break;
        }
        under_way.clear();
        while (!log.empty()) under_way.push_back(log.TakeOldest());
        for (const std::string& bytes : under_way) receiver.OnBatch(bytes);
        break;
    }
  }
  while (!outbox.empty()) {
    log.Add(outbox.front().last_sequence, outbox.front().bytes);
    outbox.Pop();
  }
  for (const std::string& bytes : under_way) receiver.OnBatch(bytes);
  while (!log.empty()) receiver.OnBatch(log.TakeOldest());
  EXPECT_TRUE(receiver.payloads == sent);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RoundTrip, ::testing::Range(1u, 9u));

}  // namespace
}  // namespace protocol
}  // namespace penstock
