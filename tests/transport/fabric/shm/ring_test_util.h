// One direction of a shared memory connection, without the connection.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_RING_TEST_UTIL_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_RING_TEST_UTIL_H_

#include <sys/stat.h>

#include <cstring>
#include <random>
#include <string>

#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "transport/fabric/shm/ring.h"

namespace penstock {
namespace fabric {
namespace shm {

constexpr uint32_t kRingBytes = 128 * 1024;
using Sent = RingSender::Result;
using Got = RingReceiver::Result;

// A fixture with the ring of `writer_`, which `reader_` reads.
class RingTest : public ::testing::Test {
 public:
  RingTest()
      : writer_(CreateControl(kRingBytes).value()),
        reader_(CreateControl(kRingBytes).value()),
        sender_(PageOf(writer_), PageOf(reader_)),
        receiver_(PageOf(reader_), PageOf(writer_), kRingBytes) {}

  Sent Send(const std::string& text) { return sender_.Send(AsBytes(text)); }
  Got Receive(std::string* text) {
    absl::Span<const uint8_t> packet;
    const Got got = receiver_.Receive(&packet);
    if (got != Got::kPacket) return got;
    text->assign(packet.begin(), packet.end());
    read_ = PageOf(reader_)->tail;
    return got;
  }
  void GrowRing() {
    std::string got;
    ASSERT_EQ(Send(std::string(kFirstRingBytes, 'g')), Sent::kSent);
    ASSERT_EQ(Receive(&got), Got::kPacket);
  }
  // Returns the memory that the writer's segment occupies.
  uint64_t AllocatedBytes() {
    struct stat status;
    EXPECT_EQ(fstat(writer_.fd(), &status), 0);
    return static_cast<uint64_t>(status.st_blocks) * 512;
  }
  // The functions below write a hostile peer's bytes.
  uint8_t* RingBytes() { return writer_.data() + kRingOffset; }
  void WriteLength(uint32_t length, uint64_t position = 0) {
    const RingHeader header = RingHeaderAt(position, length);
    std::memcpy(RingBytes() + position, &header, sizeof header);
  }

  void WriteNonsense(std::mt19937_64* random) {
    const uint64_t any = (*random)() >> ((*random)() % 64);
    const int64_t near = 8 * static_cast<int64_t>((*random)() % 512) - 2048;
    const uint64_t head = PageOf(writer_)->head;
    const uint64_t tail = PageOf(reader_)->tail;
    switch ((*random)() % 5) {
      case 0:
        PageOf(writer_)->head = any;
        break;
      case 1:
        PageOf(writer_)->head = head + near;
        break;
      case 2:
        PageOf(reader_)->tail = any;
        break;
      case 3:
        PageOf(reader_)->tail = tail + near;
        break;
      default:  // the header of the next packet
        if (sender_.has_grown()) break;
        std::memcpy(RingBytes() + read_ % kFirstRingBytes + (*random)() % 2 * 4,
                    &any, sizeof(uint32_t));
    }
  }

  // The position of the next packet. The test counts it, and does not read the
  // shared page.
  uint64_t read_ = 0;
  Segment writer_;
  Segment reader_;
  RingSender sender_;
  RingReceiver receiver_;
};

struct Fresh : RingTest {
  void TestBody() override {}
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_RING_TEST_UTIL_H_
