// Tests the answers of a borrower of device memory, message by message.

#include "transport/fabric/shm/borrower.h"

#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/types/optional.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "tests/transport/memory/fake_device_access.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/shm/borrowed_device.h"
#include "transport/fabric/shm/control.h"
#include "transport/fabric/shm/device_lender.h"
#include "transport/fabric/shm/region_key.h"
#include "transport/fabric/shm/setup_message.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

using Kind = SetupMessage::Kind;
constexpr uint32_t kId = kDeviceBit | 5;

// Counts the closed allocations. Reports nothing to the peer.
class CountingPeer : public BorrowedDevice::Peer {
 public:
  std::shared_ptr<const void> KeepReading() override { return nullptr; }
  void OnClosed(uint32_t) override { ++closed; }
  std::atomic<int> closed{0};
};

class BorrowerTest : public ::testing::Test {
 protected:
  BorrowerTest() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC,
                         0, ends),
              0);
    socket_.Reset(ends[0]);
    peer_.Reset(ends[1]);
    lender_ = std::make_unique<DeviceLender>(socket_.get(), &ours_);
    borrower_ = std::make_unique<Borrower>(socket_.get(), page_.get(), &ours_,
                                           lender_.get(), nullptr);
    borrower_->Connect(counting_);
    lent_ = theirs_.Put(std::string(memory::kMinDeviceBytes, 'x'));
  }
  void Say(Kind kind, uint32_t id) {
    SetupMessage message;
    message.kind = kind;
    message.segment_id = id;
    if (kind == Kind::kDevice) {
      message.size = lent_.size;
      message.handle = theirs_.Share(lent_.span())->handle;
    }
    EXPECT_TRUE(SendSetup(peer_.get(), message, -1).ok());
    EXPECT_EQ(borrower_->TakeIn(), Borrower::TakenIn::kSome);
  }
  absl::StatusOr<Borrower::Borrowed> Find(uint32_t id) {
    return borrower_->Find({RegionKey(id, 1), 0, lent_.size});
  }
  void AwaitClosed(int count) {
    EXPECT_TRUE(WaitUntil([&] { return counting_->closed == count; }));
  }
  absl::optional<SetupMessage> Receive() {
    auto received = ReceiveSetup(peer_.get());
    if (!received.ok()) return absl::nullopt;
    return std::move(received->message);
  }
  void ExpectClosed(uint32_t id) {
    const auto message = Receive();
    ASSERT_TRUE(message.has_value());
    EXPECT_EQ(message->kind, Kind::kClosed);
    EXPECT_EQ(message->segment_id, id);
  }

  base::UniqueFd socket_;
  base::UniqueFd peer_;
  memory::FakeDeviceAccess theirs_;
  memory::FakeDeviceAccess ours_;
  memory::Bytes lent_;
  std::shared_ptr<CountingPeer> counting_ = std::make_shared<CountingPeer>();
  std::unique_ptr<ControlPage> page_ = std::make_unique<ControlPage>();
  std::unique_ptr<DeviceLender> lender_;
  std::unique_ptr<Borrower> borrower_;
};

TEST_F(BorrowerTest, AnswersWhatIsTakenBackOnceItIsClosed) {
  Say(Kind::kDevice, kId);
  auto found = Find(kId);
  ASSERT_TRUE(found.ok()) << found.status();
  Say(Kind::kTakeBack, kId);
  EXPECT_FALSE(Find(kId).ok()) << "it may not be used any more";
  EXPECT_TRUE(borrower_->Answer());
  EXPECT_FALSE(Receive().has_value());
  found->owner.reset();
  AwaitClosed(1);
  EXPECT_EQ(ours_.open_now(), 0);
  EXPECT_TRUE(borrower_->OnClosed(kId));
  ExpectClosed(kId);
  EXPECT_TRUE(borrower_->Answer());
  EXPECT_FALSE(Receive().has_value()) << "once";
}

TEST_F(BorrowerTest, SaysUnaskedWhatIsClosedAtTheEnd) {
  Say(Kind::kDevice, kId);
  Say(Kind::kDevice, kId + 1);
  const auto held = Find(kId + 1);
  borrower_->CloseDevices();
  AwaitClosed(1);
  EXPECT_TRUE(borrower_->OnClosed(kId));
  ExpectClosed(kId);
  // Sends a message like a peer that does not know of the close yet.
  Say(Kind::kTakeBack, kId);
  // Lends memory after the peer was told to stop lending.
  Say(Kind::kDevice, kId + 2);
  EXPECT_FALSE(Find(kId + 2).ok());
  EXPECT_TRUE(borrower_->Answer());
  ExpectClosed(kId + 2);
  EXPECT_FALSE(Receive().has_value());
  EXPECT_EQ(ours_.open_now(), 1);
}

TEST_F(BorrowerTest, AnswersAgainAfterTheSocketWasFull) {
  Say(Kind::kDevice, kId);
  Say(Kind::kTakeBack, kId);
  AwaitClosed(1);
  SetupMessage other;
  other.kind = Kind::kDeclined;
  other.segment_id = kDeviceBit;
  while (SendSetup(socket_.get(), other, -1).ok()) {
  }
  EXPECT_FALSE(borrower_->OnClosed(kId));
  EXPECT_FALSE(borrower_->Answer());
  while (Receive().has_value()) {
  }
  EXPECT_TRUE(borrower_->Answer());
  ExpectClosed(kId);
}

TEST_F(BorrowerTest, APeerThatHasGoneIsToldNothing) {
  Say(Kind::kDevice, kId);
  Say(Kind::kTakeBack, kId);
  peer_.Reset();
  AwaitClosed(1);
  EXPECT_TRUE(borrower_->OnClosed(kId));
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
