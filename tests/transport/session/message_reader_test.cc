// Checks over which path a message is read, and what follows a failure.

#include "transport/session/message_reader.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/transport/session/message_reader_test_util.h"
#include "tests/transport/session/session_test_util.h"
#include "transport/wire/announce.h"

namespace penstock {
namespace session {
namespace {

memory::Payload Pieces(const std::vector<size_t>& sizes) {
  memory::Payload payload;
  for (size_t size : sizes) {
    const std::string text = Letters(size, static_cast<uint32_t>(size));
    payload.Append(
        memory::CopyBytes({reinterpret_cast<const uint8_t*>(text.data()), size})
            .value());
  }
  return payload;
}

TEST_F(MessageReaderTest, FastPathComesFirst) {
  Begin(1, Expose(7, 5000));
  EXPECT_EQ(Take(), Lines{});
  Run();
  EXPECT_EQ(Take(), (Lines{"released 7", Read(7, 1, 5000)}));
  EXPECT_EQ(fast_reads(), 2u);
  EXPECT_EQ(lifeline_reads(), 0u);
}

TEST_F(MessageReaderTest, LifelineIsReadWithoutAFastPath) {
  reader_->LoseFastPath();
  Begin(1, Expose(7, 5000));
  Run();
  EXPECT_EQ(Take(), (Lines{"released 7", Read(7, 1, 5000)}));
  EXPECT_EQ(lifeline_reads(), 2u);
  EXPECT_EQ(fast_reads(), 0u);
}

TEST_F(MessageReaderTest, LifelineIsReadWhereNothingElseIsExposed) {
  wire::Announce announce = Expose(7, 5000);
  announce.regions.erase(announce.regions.begin());
  Begin(1, announce);
  Run();
  EXPECT_EQ(Take(), (Lines{"released 7", Read(7, 1, 5000)}));
}

TEST_F(MessageReaderTest, PathThatIsNotThereFailsTheMessage) {
  reader_->LoseFastPath();
  wire::Announce announce = Expose(7, 5000);
  announce.regions.pop_back();
  Begin(1, announce);
  EXPECT_EQ(Take(), (Lines{"released 7",
                           "failed 7 of 1: no path leads to the message"}));
}

TEST_F(MessageReaderTest, PiecesAreOfThePathsSizeAndNumber) {
  Begin(1, Expose(7, 40000));
  EXPECT_EQ(fast_.waiting(Side::kB), 4u);
  fast_.Step();
  EXPECT_EQ(fast_.waiting(Side::kB), 4u);
  Run();
  EXPECT_EQ(fast_reads(), 10u);
  EXPECT_EQ(fast_.counters(Side::kB).read_bytes, 40000u);
}

TEST_F(MessageReaderTest, PiecesMayComeInAnyOrder) {
  fast_.SetReadOrder(Side::kB, [](size_t waiting) { return waiting / 2; });
  Begin(1, Expose(7, 40001));
  Run();
  EXPECT_EQ(Take(), (Lines{"released 7", Read(7, 1, 40001)}));
}

TEST_F(MessageReaderTest, FailedFastReadStartsOverOnTheLifeline) {
  fast_.FailNthRead(Side::kB, 2);
  Begin(1, Expose(7, 9000));
  Run();
  EXPECT_EQ(Take(), (Lines{"released 7", Read(7, 1, 9000)}));
  EXPECT_EQ(fast_reads(), 3u);
  EXPECT_EQ(lifeline_reads(), 3u);
}

TEST_F(MessageReaderTest, FastPathIsReadAgainAfterOneFailure) {
  fast_.FailNthRead(Side::kB, 1);
  Begin(1, Expose(7, 100));
  Run();
  Begin(1, Expose(8, 100));
  Run();
  EXPECT_EQ(Take(), (Lines{"released 7", Read(7, 1, 100), "released 8",
                           Read(8, 1, 100)}));
  EXPECT_EQ(fast_reads(), 2u);
  EXPECT_EQ(lifeline_reads(), 1u);
}

TEST_F(MessageReaderTest, FailedLifelineReadFailsTheMessage) {
  fast_.FailNthRead(Side::kB, 1);
  lifeline_.FailNthRead(Side::kB, 1);
  Begin(1, Expose(7, 9000));
  Run();
  EXPECT_EQ(Take(), (Lines{"released 7", "failed 7 of 1: a fake read failed"}));
}

TEST_F(MessageReaderTest, ReadsOfALostPathStartOverOnTheLifeline) {
  Begin(1, Expose(7, 40000));
  fast_.Step();
  fast_.Drop();
  Run();
  EXPECT_EQ(Take(), (Lines{"released 7", Read(7, 1, 40000)}));
  EXPECT_EQ(lifeline_reads(), 10u);
}

TEST_F(MessageReaderTest, ReadsThatEndAtOnceStartOverToo) {
  fast_.DropOneSide(Side::kB);  // nobody has noticed the loss yet
  Begin(1, Expose(7, 40000));
  Run();
  EXPECT_EQ(Take(), (Lines{"released 7", Read(7, 1, 40000)}));
}

TEST_F(MessageReaderTest, MoreThanAllMemoryFailsTheMessage) {
  wire::Announce announce = Expose(7, 100);
  announce.length = uint64_t{1} << 62;
  announce.regions[0].parts[0].length = announce.length;
  Begin(1, announce);
  const Lines lines = Take();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "released 7");
  EXPECT_EQ(lines[1].find("failed 7 of 1"), 0u);
  EXPECT_EQ(fast_reads(), 0u);
}

TEST_F(MessageReaderTest, IdThatIsBeingReadCannotBeAnnouncedAgain) {
  Begin(1, Expose(7, 5000));
  EXPECT_TRUE(absl::IsInvalidArgument(reader_->Begin(1, Expose(7, 100))));
  EXPECT_TRUE(absl::IsInvalidArgument(reader_->Begin(2, Expose(7, 100))));
  Run();
  EXPECT_EQ(Take(), (Lines{"released 7", Read(7, 1, 5000)}));
}

TEST_F(MessageReaderTest, IdThatWaitsCannotBeAnnouncedAgain) {
  Begin(1, Expose(7, 10000));
  Begin(1, Expose(8, 5000));
  EXPECT_TRUE(absl::IsInvalidArgument(reader_->Begin(1, Expose(8, 100))));
}

TEST_F(MessageReaderTest, IdThatWasReadBelongsToItsStreamNoMore) {
  Begin(1, Expose(7, 100));
  Run();
  Take();
  Begin(2, Expose(7, 200));
  reader_->Abandon(1);
  Run();
  EXPECT_EQ(Take(), (Lines{"released 7", Read(7, 2, 200)}));
}

TEST_F(MessageReaderTest, CompletionOfAnUnknownReadIsIgnored) {
  reader_->OnReadDone(99, absl::OkStatus());
  EXPECT_EQ(Take(), Lines{});
}

TEST_F(MessageReaderTest, AbandonedMessageIsReleasedOnceItsReadsHaveEnded) {
  Begin(1, Expose(7, 40000));
  fast_.Step();
  reader_->Abandon(1);
  reader_->Abandon(1);
  EXPECT_EQ(Take(), Lines{});
  EXPECT_EQ(fast_.Deliver(3), 3);
  EXPECT_EQ(Take(), Lines{});
  fast_.Step();
  EXPECT_EQ(Take(), Lines{"released 7"});
  EXPECT_EQ(fast_reads(), 5u);
}

TEST_F(MessageReaderTest, AbandonedMessageIsNotReadAgain) {
  fast_.FailNthRead(Side::kB, 1);
  Begin(1, Expose(7, 5000));
  reader_->Abandon(1);
  Run();
  EXPECT_EQ(Take(), Lines{"released 7"});
  EXPECT_EQ(lifeline_reads(), 0u);
}

TEST_F(MessageReaderTest, AbandonLeavesOtherStreamsAlone) {
  Begin(1, Expose(7, 3000));
  Begin(2, Expose(8, 3000));
  Begin(1, Expose(9, 3000));
  reader_->Abandon(1);
  Run();
  EXPECT_EQ(Take(), (Lines{"released 7", "released 8", Read(8, 2, 3000),
                           "released 9"}));
}

TEST_F(MessageReaderTest, DiscardReleasesWithoutReading) {
  reader_->Discard(Expose(7, 5000));
  EXPECT_EQ(Take(), Lines{"released 7"});
  EXPECT_EQ(fast_reads() + lifeline_reads(), 0u);
}

// Expects that the message is one block, read in pieces of 4,096 bytes.
TEST_F(MessageReaderTest, PartsNextToOneAnotherAreReadAsOne) {
  keeps_ = true;
  const memory::Payload payload = Pieces({3000, 1, 6000, 2, 9000});
  Begin(1, Expose(7, payload, 5));
  Run();
  ASSERT_EQ(kept_.size(), 1u);
  EXPECT_EQ(ToString(kept_[0]), ToString(payload));
  EXPECT_EQ(fast_reads(), 5u);
}

TEST_F(MessageReaderTest, PartsAreReadIntoOneBlock) {
  keeps_ = true;
  const memory::Payload payload = Pieces({3000, 1, 6000, 2, 9000});
  wire::Announce announce = Expose(7, payload, 5);
  announce.regions[0].parts.clear();
  for (const memory::Bytes& piece : payload.pieces()) {
    const auto apart = Expose(8, memory::Payload(piece), 1);
    announce.regions[0].parts.push_back(apart.regions[0].parts[0]);
  }
  Begin(1, announce);
  Run();
  ASSERT_EQ(kept_.size(), 1u);
  EXPECT_EQ(kept_[0].pieces().size(), 1u);
  EXPECT_EQ(ToString(kept_[0]), ToString(payload));
  EXPECT_EQ(fast_reads(), 1u + 1 + 2 + 1 + 3);
  EXPECT_EQ(reader_->pending_parts(), 0u);
}

TEST_F(MessageReaderTest, PartsArePending) {
  Begin(1, Expose(7, Pieces({3000, 1, 6000}), 3));
  Begin(1, Expose(8, Pieces({3000, 6000}), 2));
  EXPECT_EQ(reader_->pending_parts(), 5u);
  Run();
  EXPECT_EQ(reader_->pending_parts(), 2u);  // parts of the deferred message
  reader_->Abandon(1);
  EXPECT_EQ(reader_->pending_parts(), 0u);
}

// Tests a lifeline with fewer parts than the fast path.
TEST_F(MessageReaderTest, PartsOfALostPathAreReadOverTheLifeline) {
  const memory::Payload payload = Pieces({3000, 1, 6000});
  wire::Announce announce = Expose(7, payload, 3);
  announce.regions[1] = Expose(8, payload, 1).regions[1];
  keeps_ = true;
  Begin(1, announce);
  fast_.Drop();
  Run();
  ASSERT_EQ(kept_.size(), 1u);
  EXPECT_EQ(ToString(kept_[0]), ToString(payload));
  EXPECT_EQ(lifeline_reads(), 3u);  // 9,001 bytes
}

class LoadingReaderTest : public MessageReaderTest {
 protected:
  static LinkOptions Options() {
    LinkOptions options;
    options.can_load = true;
    return options;
  }
  explicit LoadingReaderTest(bool load_in_place = true)
      : MessageReaderTest(Options(), load_in_place) {}

  static std::string Loaded(uint64_t id, uint32_t stream, size_t size) {
    return absl::StrCat("message ", id, " of ", stream,
                        ", budget 0: ", Brief(Letters(size, id)));
  }
};

TEST_F(LoadingReaderTest, LoadedMessageIsThereAtOnce) {
  keeps_ = true;
  Begin(1, Expose(7, 5000));
  EXPECT_EQ(Take(), (Lines{"released 7", Loaded(7, 1, 5000)}));
  EXPECT_EQ(fast_reads() + lifeline_reads(), 0u);
  EXPECT_EQ(fast_.loans(Side::kB), 1);
  kept_.clear();
  EXPECT_EQ(fast_.loans(Side::kB), 0);
}

TEST_F(LoadingReaderTest, LoadedMessagesNeedNoBudget) {
  keeps_ = true;
  for (uint64_t id = 1; id <= 3; ++id) Begin(1, Expose(id, 9000));
  EXPECT_EQ(Take().size(), 6u);
}

TEST_F(LoadingReaderTest, MessageThatCannotBeLoadedIsRead) {
  wire::Announce announce = Expose(7, 5000);
  announce.regions[0].parts[0].offset += 1;  // nothing is exposed there
  Begin(1, announce);
  Run();
  EXPECT_EQ(Take(), (Lines{"released 7", Read(7, 1, 5000)}));
  EXPECT_EQ(lifeline_reads(), 2u);
  EXPECT_EQ(fast_.loans(Side::kB), 0);
}

TEST_F(LoadingReaderTest, APartIsAPiece) {
  keeps_ = true;
  Begin(1, Expose(7, Pieces({3000, 1, 6000}), 3));
  ASSERT_EQ(kept_.size(), 1u);
  ASSERT_EQ(kept_[0].pieces().size(), 3u);
  EXPECT_EQ(kept_[0].pieces()[0].size, 3000u);
  EXPECT_EQ(kept_[0].pieces()[1].size, 1u);
  EXPECT_EQ(kept_[0].pieces()[2].size, 6000u);
  EXPECT_EQ(fast_.loans(Side::kB), 1);
}

TEST_F(LoadingReaderTest, APartThatCannotBeLoadedIsReadWithTheOthers) {
  wire::Announce announce = Expose(7, ToPayload(Letters(5000, 7)), 2);
  // Moves the end of the part behind the exposed bytes.
  announce.regions[0].parts[1].offset += 1;
  Begin(1, announce);
  Run();
  EXPECT_EQ(Take(), (Lines{"released 7", Read(7, 1, 5000)}));
  EXPECT_EQ(fast_.loans(Side::kB), 0);
}

class NoLoadingReaderTest : public LoadingReaderTest {
 protected:
  NoLoadingReaderTest() : LoadingReaderTest(/*load_in_place=*/false) {}
};

TEST_F(NoLoadingReaderTest, MessagesAreReadThoughTheyCouldBeLoaded) {
  Begin(1, Expose(7, 5000));
  Run();
  EXPECT_EQ(Take(), (Lines{"released 7", Read(7, 1, 5000)}));
  EXPECT_EQ(fast_.counters(Side::kB).read_bytes, 5000u);
  EXPECT_EQ(fast_.loans(Side::kB), 0);
}

// Tests the loan of an abandoned message. A lender gets such a loan back only
// after the reader has loaded and dropped the message.
TEST_F(NoLoadingReaderTest, LoanOfAnAbandonedMessageComesBack) {
  Begin(1, Expose(7, 5000));
  reader_->Abandon(1);
  Run();
  EXPECT_EQ(Take(), Lines{"released 7"});
  EXPECT_EQ(fast_.counters(Side::kB).given_back, 1u);
}

TEST_F(NoLoadingReaderTest, LoanOfAReadMessageComesBackOnce) {
  Begin(1, Expose(7, Pieces({3000, 1, 6000}), 3));
  Run();
  EXPECT_EQ(Take().size(), 2u);
  EXPECT_EQ(fast_.counters(Side::kB).given_back, 1u);
}

TEST_F(LoadingReaderTest, ALoadedMessageIsNotGivenBackToo) {
  Begin(1, Expose(7, 5000));
  EXPECT_EQ(fast_.counters(Side::kB).loads, 1u);
  EXPECT_EQ(fast_.counters(Side::kB).given_back, 0u);
}

TEST_F(LoadingReaderTest, DiscardGivesTheLoanBack) {
  reader_->Discard(Expose(7, 5000));
  EXPECT_EQ(Take(), Lines{"released 7"});
  EXPECT_EQ(fast_.counters(Side::kB).given_back, 1u);
}

TEST_F(LoadingReaderTest, DiscardNeedsNoFastPath) {
  reader_->LoseFastPath();
  reader_->Discard(Expose(7, 5000));
  EXPECT_EQ(Take(), Lines{"released 7"});
  EXPECT_EQ(fast_.counters(Side::kB).given_back, 0u);
}

}  // namespace
}  // namespace session
}  // namespace penstock
