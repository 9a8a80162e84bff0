// Tests peers of another user, and the memory that they get.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/child.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "transport/fabric/shm/control.h"
#include "transport/fabric/shm/fabric.h"
#include "transport/fabric/shm/setup_message.h"
#include "transport/fabric/shm/user_arenas.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20;

TEST(UserArenas, EachUserHasAnArenaOfItsOwn) {
  auto own = ArenaFor(geteuid()).value();
  auto one = ArenaFor(1001).value();
  auto other = ArenaFor(1002).value();
  EXPECT_EQ(ArenaFor(1001).value(), one);
  EXPECT_NE(own, one);
  EXPECT_NE(one, other);
  auto first = one->Allocate(kMiB).value();
  auto second = other->Allocate(kMiB).value();
  EXPECT_NE(first->place().segment_id, second->place().segment_id);
  // Expects that memory which peers of one user could read is never reused for
  // another user.
  const uint32_t of_one = first->place().segment_id;
  first.reset();
  auto third = other->Allocate(kMiB).value();
  EXPECT_NE(third->place().segment_id, of_one);
}

TEST(UserArenas, OtherUsersAreFewAndHaveLess) {
  ForkedChild child([] {  // the child has no arena yet
    for (uid_t uid = 2001; uid < 2001 + kMaxOtherUsers; ++uid) {
      ASSERT_TRUE(ArenaFor(uid).ok()) << uid;
    }
    EXPECT_TRUE(absl::IsResourceExhausted(ArenaFor(3000).status()));
    EXPECT_TRUE(ArenaFor(geteuid()).ok());
    EXPECT_TRUE(ArenaFor(2001).ok());
    const uint64_t more = Arena::DefaultBudget() / 4 + 1;
    EXPECT_TRUE(absl::IsResourceExhausted(
        ArenaFor(2001).value()->Allocate(more).status()));
  });
  EXPECT_TRUE(child.Join());
}

// A test with both ends in this process. Each treats the other as a process of
// another user.
class ShmCopied : public ::testing::Test {
 protected:
  static Options Copying(const std::shared_ptr<Arena>& arena) {
    Options options;
    options.arena = arena;
    options.always_copy = true;
    return options;
  }
  void SetUp() override { ASSERT_NE(pair_, nullptr); }
  Endpoint* a() { return pair_->listening.endpoint.get(); }
  Endpoint* b() { return pair_->connecting.endpoint.get(); }

  std::shared_ptr<Arena> arena_ = Arena::Create(64 * kMiB);
  ShmFabric fabric_{Copying(arena_)};
  std::unique_ptr<Pair> pair_ = MakePair(&fabric_, &fabric_);
};

TEST_F(ShmCopied, NothingIsLoadedAndEverythingCanBeRead) {
  EXPECT_FALSE(a()->capabilities().can_load);
  EXPECT_EQ(a()->Describe(), "ring 256 KiB, copied: as configured");
  auto exposure = b()->Expose(PatternPayload(kMiB, 3), 1);
  ASSERT_TRUE(exposure.ok()) << exposure.status();
  EXPECT_TRUE(absl::IsFailedPrecondition(a()->Load(exposure->region).status()));
  std::vector<uint8_t> into(kMiB);
  a()->Read(exposure->region[0], 0, absl::MakeSpan(into), 1);
  EXPECT_TRUE(pair_->listening.events.reads[1].ok());
  EXPECT_TRUE(HasPattern(into, 3));
}

TEST_F(ShmCopied, LoanEndsWithItsReleaseByTheSession) {
  auto exposure = b()->Expose(PatternPayload(kMiB, 3), 1);
  const RemoteRegion region = exposure->region;
  *exposure = Exposure();
  EXPECT_EQ(arena_->used(), kMiB);
  b()->Withdraw(region);
  EXPECT_EQ(arena_->used(), 0u);
  b()->Withdraw(region);
}

TEST_F(ShmCopied, GivingBackEndsTheLoanToo) {
  auto exposure = b()->Expose(PatternPayload(kMiB, 3), 1);
  const RemoteRegion region = exposure->region;
  *exposure = Exposure();
  std::vector<uint8_t> into(kMiB);
  a()->Read(region[0], 0, absl::MakeSpan(into), 1);
  b()->Poll();
  EXPECT_EQ(arena_->used(), kMiB);
  a()->GiveBack(region);
  b()->Poll();
  EXPECT_EQ(arena_->used(), 0u);
  b()->Withdraw(region);
}

// Tests a payload of several pieces. They become parts of the copy, so that the
// peer can put each piece into its own memory.
TEST_F(ShmCopied, PayloadOfSeveralPiecesIsOneCopy) {
  auto lease = arena_->Allocate(kMiB).value();
  memory::Payload payload = PatternPayload(kMiB, 3);
  payload.Append(memory::Bytes{lease->data(), kMiB, lease});
  auto exposure = b()->Expose(payload, /*max_parts=*/100);
  ASSERT_TRUE(exposure.ok()) << exposure.status();
  ASSERT_EQ(exposure->region.size(), 2u);
  EXPECT_EQ(exposure->region[0].length, kMiB);
  EXPECT_EQ(exposure->region[1].length, kMiB);
  EXPECT_EQ(exposure->region[1].key, exposure->region[0].key);
  EXPECT_EQ(exposure->region[1].offset, exposure->region[0].offset + kMiB);
  EXPECT_EQ(exposure->stable.pieces().size(), 1u);
}

TEST_F(ShmCopied, OneSideThatCopiesIsEnough) {
  ShmFabric other;
  for (auto sides :
       {std::make_pair(&fabric_, &other), std::make_pair(&other, &fabric_)}) {
    auto pair = MakePair(sides.first, sides.second);
    ASSERT_NE(pair, nullptr);
    EXPECT_FALSE(pair->listening.endpoint->capabilities().can_load);
    EXPECT_FALSE(pair->connecting.endpoint->capabilities().can_load);
    Endpoint* follower = sides.first == &other
                             ? pair->listening.endpoint.get()
                             : pair->connecting.endpoint.get();
    EXPECT_EQ(follower->Describe(), "ring 256 KiB, copied: the peer copies");
  }
}

// A fixture of two processes; the child runs as another user.
class ShmUsers : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!IsRoot()) GTEST_SKIP() << "needs root to become another user";
  }

  // Becomes the other user, and connects.
  std::unique_ptr<End> ConnectAsOther() {
    BecomeUser(kOtherUid);
    auto end = absl::make_unique<End>();
    ShmFabric fabric;
    Outcome outcome;
    auto connect = fabric.Connect(offer_, token_, outcome.callback());
    auto endpoint = outcome.Take();
    EXPECT_TRUE(endpoint.ok()) << endpoint.status();
    if (!endpoint.ok()) return nullptr;
    end->endpoint = *std::move(endpoint);
    end->endpoint->Start(&end->events);
    return end;
  }

  std::unique_ptr<End> Accepted() {
    auto end = absl::make_unique<End>();
    auto endpoint = listened_.Take();
    EXPECT_TRUE(endpoint.ok()) << endpoint.status();
    if (!endpoint.ok()) return nullptr;
    end->endpoint = *std::move(endpoint);
    end->endpoint->Start(&end->events);
    return end;
  }

  static std::string AwaitPacket(End* end) {
    EXPECT_TRUE(WaitUntil([end] {
      end->endpoint->Poll();
      return !end->events.packets.empty();
    }));
    if (end->events.packets.empty()) return "";
    std::string packet = std::move(end->events.packets.front());
    end->events.packets.erase(end->events.packets.begin());
    return packet;
  }

  static void Lend(End* end, size_t size, uint8_t seed) {
    auto exposure = end->endpoint->Expose(PatternPayload(size, seed), 1);
    ASSERT_TRUE(exposure.ok()) << exposure.status();
    const RemotePart& part = exposure->region[0];
    EXPECT_TRUE(
        Send(end->endpoint.get(), absl::StrCat(part.key, " ", part.offset)));
  }
  static void ReadLent(End* end, size_t size, uint8_t seed) {
    const std::string text = AwaitPacket(end);
    char* rest = nullptr;
    RemotePart part;
    part.key = std::strtoull(text.c_str(), &rest, 10);
    part.offset = std::strtoull(rest, nullptr, 10);
    part.length = size;
    EXPECT_FALSE(end->endpoint->capabilities().can_load);
    EXPECT_FALSE(end->endpoint->Load({part}).ok());
    std::vector<uint8_t> into(size);
    end->endpoint->Read(part, 0, absl::MakeSpan(into), 1);
    EXPECT_TRUE(end->events.reads[1].ok()) << end->events.reads[1];
    EXPECT_TRUE(HasPattern(into, seed));
    end->endpoint->GiveBack({part});
  }

  static Options With(const std::shared_ptr<Arena>& arena) {
    Options options;
    options.arena = arena;
    return options;
  }

  // The arena of this process's user.
  const std::shared_ptr<Arena> own_ = Arena::Create(64 * kMiB);
  ShmFabric server_{With(own_)};
  const std::string offer_ = server_.Offer().value();
  const std::string token_ = NewTestToken();
  Outcome listened_;
  std::unique_ptr<PendingConnect> listen_ =
      server_.Listen(token_, listened_.callback());
};

TEST_F(ShmUsers, PayloadsAreReadByCopyBothWays) {
  ForkedChild child([this] {
    auto end = ConnectAsOther();
    ASSERT_NE(end, nullptr);
    EXPECT_EQ(end->endpoint->Describe(),
              "ring 256 KiB, copied: another user (uid 0)");
    Lend(end.get(), kMiB, 1);
    ReadLent(end.get(), 20 * kMiB, 2);
    EXPECT_TRUE(Send(end->endpoint.get(), "done"));
    AwaitPacket(end.get());
  });
  auto end = Accepted();
  ASSERT_NE(end, nullptr);
  EXPECT_EQ(
      end->endpoint->Describe(),
      absl::StrCat("ring 256 KiB, copied: another user (uid ", kOtherUid, ")"));
  auto others = ArenaFor(kOtherUid).value();
  Lend(end.get(), 20 * kMiB, 2);
  // Expects that the memory is only in the other user's arena.
  EXPECT_EQ(own_->used(), 0u);
  EXPECT_EQ(others->used(), 20 * kMiB);
  ReadLent(end.get(), kMiB, 1);
  EXPECT_EQ(AwaitPacket(end.get()), "done");
  end->endpoint->Poll();
  EXPECT_EQ(others->used(), 0u);
  EXPECT_TRUE(Send(end->endpoint.get(), "end"));
  EXPECT_TRUE(child.Join());
}

// Tries to write with the passed descriptor, and with a new one that is opened
// through it.
void ExpectReadOnly(int fd, uint64_t size) {
  const std::string path = absl::StrCat("/proc/self/fd/", fd);
  base::UniqueFd again(open(path.c_str(), O_RDWR | O_CLOEXEC));
  for (int each : {fd, again.get()}) {
    if (each < 0) continue;
    EXPECT_EQ(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, each, 0),
              MAP_FAILED);
    EXPECT_EQ(pwrite(each, "x", 1, 0), -1);
    EXPECT_EQ(ftruncate(each, 0), -1);
    EXPECT_EQ(ftruncate(each, static_cast<off_t>(2 * size)), -1);
    EXPECT_EQ(fallocate(each, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                        static_cast<off_t>(size)),
              -1);
    void* const data = mmap(nullptr, size, PROT_READ, MAP_SHARED, each, 0);
    ASSERT_NE(data, MAP_FAILED);
    EXPECT_EQ(mprotect(data, size, PROT_READ | PROT_WRITE), -1);
    EXPECT_EQ(madvise(data, size, MADV_REMOVE), -1);
  }
}

TEST_F(ShmUsers, WhatIsPassedCannotBeWrittenByAnyDescriptor) {
  ForkedChild child([this] {
    BecomeUser(kOtherUid);
    base::UniqueFd socket = RawConnect(offer_);
    auto control = CreateControl(256 * 1024);
    SetupMessage hello;
    hello.size = 256 * 1024;
    hello.token = token_;
    ASSERT_TRUE(SendSetup(socket.get(), hello, control->fd()).ok());
    // Receives the control segment, and then one of the arena's segments.
    for (int i = 0; i < 2; ++i) {
      absl::StatusOr<ReceivedSetup> received;
      EXPECT_TRUE(WaitUntil([&] {
        received = ReceiveSetup(socket.get());
        return !absl::IsNotFound(received.status());
      }));
      ASSERT_TRUE(received.ok()) << received.status();
      // Expects that the server announces copies, although the peer did not
      // announce any.
      EXPECT_EQ(received->message.copies, i == 0);
      ExpectReadOnly(received->fd.get(), 4096);
    }
  });
  auto end = Accepted();
  ASSERT_NE(end, nullptr);
  EXPECT_TRUE(end->endpoint->Expose(PatternPayload(kMiB, 1), 1).ok());
  EXPECT_TRUE(child.Join());
}

TEST_F(ShmUsers, OtherUserMayBeNobody) {
  ForkedChild child([this] {
    // Takes the overflow uid, which is a real user's uid here.
    BecomeUser(65534);
    ShmFabric fabric;
    Outcome outcome;
    auto connect = fabric.Connect(offer_, token_, outcome.callback());
    EXPECT_TRUE(outcome.Take().ok());
  });
  auto end = Accepted();
  ASSERT_NE(end, nullptr);
  EXPECT_THAT(end->endpoint->Describe(), HasSubstr("(uid 65534)"));
  EXPECT_TRUE(child.Join());
}

class ShmPrivate : public ShmUsers {
 protected:
  static Options Private() {
    Options options;
    options.other_users = false;
    return options;
  }
};

TEST_F(ShmPrivate, ConnectingSideRefusesAnotherUserWithTheReason) {
  ForkedChild child([this] {
    BecomeUser(kOtherUid);
    ShmFabric fabric(Private());
    Outcome outcome;
    auto connect = fabric.Connect(offer_, token_, outcome.callback());
    const absl::Status status = outcome.Take().status();
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("peer runs as uid 0, this process as "
                                       "uid ",
                                       kOtherUid)));
    EXPECT_THAT(std::string(status.message()), HasSubstr("promises privacy"));
  });
  EXPECT_TRUE(child.Join());
  // Expects that the client sent nothing to that socket, not even the token.
  EXPECT_FALSE(listened_.finished());
}

TEST_F(ShmPrivate, ListeningSideClosesAtOnce) {
  ShmFabric server(Private());
  const std::string offer = server.Offer().value();
  ForkedChild child([&offer] {
    BecomeUser(kOtherUid);
    base::UniqueFd socket = RawConnect(offer);
    // Expects that the server closes long before the timeout of the set-up.
    const absl::Time start = absl::Now();
    EXPECT_TRUE(WaitUntil([&] { return IsHungUp(socket); }));
    EXPECT_LT(absl::Now() - start, absl::Seconds(1));
  });
  EXPECT_TRUE(child.Join());
  EXPECT_NE(MakePair(&server, &server), nullptr);
}

TEST_F(ShmUsers, FloodByAnotherUserLeavesHalfOfThePlaces) {
  Options options;
  options.max_half_open = 8;
  options.setup_timeout = 3 * kTestDeadline;
  ShmFabric server(options);
  const std::string offer = server.Offer().value();
  const base::UniqueFd own = RawConnect(offer);
  ForkedChild child([&offer] {
    BecomeUser(kOtherUid);
    std::vector<base::UniqueFd> sockets;
    for (int i = 0; i < 20; ++i) sockets.push_back(RawConnect(offer));
    auto closed = [&sockets] {
      size_t count = 0;
      for (const base::UniqueFd& socket : sockets) count += IsHungUp(socket);
      return count;
    };
    EXPECT_TRUE(WaitUntil([&] { return closed() == 16; }));
  });
  EXPECT_TRUE(child.Join());
  EXPECT_FALSE(IsHungUp(own));
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
