#include "frameworks/torch/mailbox.h"

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "collectives/group.h"
#include "frameworks/torch/workers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/frameworks/torch/memory_board.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace pytorch {
namespace {

using testing::HasSubstr;

// An operation that has been started.
struct Pending {
  absl::Notification ended;
  absl::Status status;
  int source = -2;
  std::vector<uint8_t> bytes;

  Mailbox::Done End() {
    return [this](const absl::Status& result, int from) {
      status = result;
      source = from;
      ended.Notify();
    };
  }
  const absl::Status& Wait() {
    ended.WaitForNotification();
    return status;
  }
};

std::unique_ptr<Pending> Send(Mailbox* mailbox, int to, uint32_t tag,
                              std::vector<uint8_t> bytes) {
  auto pending = std::make_unique<Pending>();
  const auto owner = std::make_shared<std::vector<uint8_t>>(std::move(bytes));
  const memory::Bytes message{owner->data(), owner->size(), owner};
  mailbox->Send(to, tag, memory::Payload(message), pending->End());
  return pending;
}

std::unique_ptr<Pending> Receive(Mailbox* mailbox, int from, uint32_t tag,
                                 int64_t size) {
  auto pending = std::make_unique<Pending>();
  pending->bytes.resize(size);
  mailbox->Receive(from, tag, pending->bytes.data(), size, pending->End());
  return pending;
}

// Runs ranks that have mailboxes.
void RunMailboxes(
    int ranks, const std::function<void(collectives::Group*, Mailbox*)>& run) {
  RunRanks(ranks, [&](collectives::Group* group) {
    Workers workers;
    auto mailbox = Mailbox::Open(group, "127.0.0.1", &workers);
    ASSERT_TRUE(mailbox.ok()) << mailbox.status();
    run(group, mailbox->get());
  });
}

std::vector<uint8_t> Letter(int from, int to, int number, int64_t size) {
  std::vector<uint8_t> bytes(size);
  for (int64_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<uint8_t>(from * 3 + to * 5 + number * 7 + i);
  }
  return bytes;
}

TEST(MailboxTest, MessagesArriveByTagInTheOrderOfTheSends) {
  constexpr int kRanks = 3;
  constexpr int kMessages = 20;
  constexpr int kTags = 2;
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  std::vector<int64_t> sizes(kMessages);
  for (int64_t& size : sizes) size = random() % (1u << random() % 20);
  RunMailboxes(kRanks, [&](collectives::Group* group, Mailbox* mailbox) {
    const int rank = group->rank();
    std::vector<std::unique_ptr<Pending>> sent, received;
    for (int peer = 0; peer < kRanks; ++peer) {
      for (int i = 0; i < kMessages; ++i) {
        sent.push_back(
            Send(mailbox, peer, i % kTags, Letter(rank, peer, i, sizes[i])));
      }
    }
    // Receives the tags in another order than they were sent.
    std::vector<std::pair<int, int>> order;
    for (int tag = kTags - 1; tag >= 0; --tag) {
      for (int peer = 0; peer < kRanks; ++peer) {
        for (int i = tag; i < kMessages; i += kTags) {
          order.emplace_back(peer, i);
          received.push_back(Receive(mailbox, peer, tag, sizes[i]));
        }
      }
    }
    for (size_t i = 0; i < order.size(); ++i) {
      const auto [peer, number] = order[i];
      EXPECT_EQ(received[i]->Wait(), absl::OkStatus());
      EXPECT_EQ(received[i]->source, peer);
      EXPECT_EQ(received[i]->bytes, Letter(peer, rank, number, sizes[number]));
    }
    for (const auto& send : sent) EXPECT_EQ(send->Wait(), absl::OkStatus());
    EXPECT_EQ(group->Barrier(), absl::OkStatus());
  });
}

TEST(MailboxTest, SmallMessagesDoNotOvertakeLargeOnesOverTcp) {
  constexpr int kMessages = 40;
  ASSERT_EQ(setenv("PENSTOCK_FABRICS", "tcp", 1), 0);
  RunMailboxes(2, [&](collectives::Group* group, Mailbox* mailbox) {
    const int other = 1 - group->rank();
    std::vector<std::unique_ptr<Pending>> pending;
    for (int i = 0; i < kMessages; ++i) {
      const int64_t size = i % 2 == 0 ? 1 << 20 : 8;
      const auto tag = static_cast<uint32_t>(i / 2 % 2);
      pending.push_back(group->rank() == 0
                            ? Send(mailbox, other, tag, Letter(0, 1, i, size))
                            : Receive(mailbox,
                                      i % 3 == 0 ? other : Mailbox::kAnyRank,
                                      tag, size));
    }
    for (int i = 0; i < kMessages; ++i) {
      EXPECT_EQ(pending[i]->Wait(), absl::OkStatus()) << i;
      if (group->rank() == 0) continue;
      EXPECT_EQ(pending[i]->bytes,
                Letter(0, 1, i, static_cast<int64_t>(pending[i]->bytes.size())))
          << i;
    }
    // Waits until the sender has all answers. Afterwards the receiver is
    // destroyed.
    EXPECT_EQ(group->Barrier(), absl::OkStatus());
  });
  unsetenv("PENSTOCK_FABRICS");
}

TEST(MailboxTest, AnyRankIsTheFirstThatSends) {
  RunMailboxes(3, [&](collectives::Group* group, Mailbox* mailbox) {
    if (group->rank() != 0) {
      EXPECT_EQ(Send(mailbox, 0, 9, Letter(group->rank(), 0, 0, 100))->Wait(),
                absl::OkStatus());
    }
    int sources = 0;
    for (int i = 1; group->rank() == 0 && i < 3; ++i) {
      const auto received = Receive(mailbox, Mailbox::kAnyRank, 9, 100);
      EXPECT_EQ(received->Wait(), absl::OkStatus());
      EXPECT_EQ(received->bytes, Letter(received->source, 0, 0, 100));
      sources += received->source;
    }
    EXPECT_EQ(sources, group->rank() == 0 ? 1 + 2 : 0);
    EXPECT_EQ(group->Barrier(), absl::OkStatus());
  });
}

TEST(MailboxTest, AnotherSizeIsReportedToBothAndTheNextMessageArrives) {
  RunMailboxes(2, [&](collectives::Group* group, Mailbox* mailbox) {
    for (const int size : {7, 8}) {
      const auto message = group->rank() == 0
                               ? Send(mailbox, 1, 0, Letter(0, 1, 0, size))
                               : Receive(mailbox, 0, 0, 8);
      if (size == 8) {
        EXPECT_EQ(message->Wait(), absl::OkStatus());
      } else {
        EXPECT_THAT(message->Wait().ToString(),
                    HasSubstr("rank 0 sends 7 bytes, and rank 1 expects 8"));
      }
    }
    EXPECT_EQ(group->Barrier(), absl::OkStatus());
  });
}

TEST(MailboxTest, ARankThatLeavesEndsReceivesAndSends) {
  RunMailboxes(3, [&](collectives::Group* group, Mailbox* mailbox) {
    if (group->rank() == 1) return;  // leaves the group
    const auto received = Receive(mailbox, 1, 0, 8);
    EXPECT_THAT(received->Wait().ToString(),
                HasSubstr("UNAVAILABLE: rank 1 has died or left"));
    EXPECT_EQ(Send(mailbox, 1, 0, {1, 2})->Wait().code(),
              absl::StatusCode::kUnavailable);
    // Expects that the remaining ranks still exchange messages.
    const int other = 2 - group->rank();
    const auto any = Receive(mailbox, Mailbox::kAnyRank, 1, 2);
    const auto sent = Send(mailbox, other, 1, {1, 2});
    EXPECT_EQ(any->Wait(), absl::OkStatus());
    // Accepts an error, because the other rank may leave before its answer
    // arrives.
    const absl::Status status = sent->Wait();
    EXPECT_TRUE(status.ok() || absl::IsUnavailable(status)) << status;
  });
}

TEST(MailboxTest, TheEndOfAMailboxEndsTheReceivesOfBothSides) {
  RunMailboxes(2, [&](collectives::Group* group, Mailbox* mailbox) {
    const auto received = Receive(mailbox, 1 - group->rank(), 0, 8);
    if (group->rank() == 0) {
      mailbox->End(absl::CancelledError("test"));
      EXPECT_EQ(received->Wait(), absl::CancelledError("test"));
      EXPECT_EQ(Send(mailbox, 1, 0, {})->Wait(), absl::CancelledError("test"));
    } else {
      EXPECT_EQ(received->Wait().code(), absl::StatusCode::kUnavailable);
    }
    // Keeps both mailboxes until both ranks have reached the barrier.
    EXPECT_EQ(group->Barrier(), absl::OkStatus());
  });
}

TEST(MailboxTest, RanksOutOfRangeAreRefused) {
  RunMailboxes(1, [&](collectives::Group*, Mailbox* mailbox) {
    for (const int rank : {-2, 1}) {
      EXPECT_EQ(Receive(mailbox, rank, 0, 8)->Wait().code(),
                absl::StatusCode::kInvalidArgument);
      EXPECT_EQ(Send(mailbox, rank, 0, {})->Wait().code(),
                absl::StatusCode::kInvalidArgument);
    }
    EXPECT_EQ(Receive(mailbox, Mailbox::kAnyRank, 0, 8)->Wait().code(),
              absl::StatusCode::kUnavailable);
  });
}

}  // namespace
}  // namespace pytorch
}  // namespace penstock
