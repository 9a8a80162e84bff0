// Tests the memory for ids that have no row: counts of pushes, and removals.

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "ps/sparse/admission.h"
#include "ps/sparse/hash.h"
#include "ps/sparse/removals.h"
#include "tests/ps/sparse/failing_memory.h"

namespace penstock::ps::sparse {
namespace {

constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();
const HashKey kHash(1);

uint32_t TagOf(uint64_t id) { return static_cast<uint32_t>(kHash(id)); }

bool Admit(Admission* admission, uint64_t id, size_t byte_limit = kNoLimit) {
  const bool would = admission->WouldAdmit(id, TagOf(id));
  const bool admitted = admission->Admit(id, TagOf(id), byte_limit);
  EXPECT_EQ(would, admitted) << id;
  return admitted;
}

TEST(AdmissionTest, OneAdmitsAllAndTakesNoMemory) {
  FailingMemory memory;
  Admission admission(1, 1000, &kHash, &memory);
  EXPECT_TRUE(Admit(&admission, 5));
  EXPECT_EQ(admission.bytes(), 0u);
  EXPECT_EQ(memory.held(), 0u);
}

TEST(AdmissionTest, AdmitsWithTheCountThatIsAskedForAndThenCountsAnew) {
  FailingMemory memory;
  Admission admission(3, 1000, &kHash, &memory);
  for (int round = 0; round < 3; ++round) {
    for (const uint64_t id : {uint64_t{0}, uint64_t{7}, ~uint64_t{0}}) {
      EXPECT_FALSE(Admit(&admission, id));
      EXPECT_FALSE(Admit(&admission, id));
      EXPECT_TRUE(Admit(&admission, id));
    }
  }
  EXPECT_EQ(admission.bytes(), memory.held());
  EXPECT_EQ(admission.bytes(), Admission::BytesFor(1));
}

// Tests that no counter is lost. A lost counter would delay the row of its id.
TEST(AdmissionTest, GrowsWithUseAndKeepsItsCounters) {
  FailingMemory memory;
  Admission admission(2, 1 << 20, &kHash, &memory);
  EXPECT_EQ(admission.bytes(), Admission::BytesFor(1));
  for (uint64_t id = 0; id < 10000; ++id) EXPECT_FALSE(Admit(&admission, id));
  EXPECT_EQ(admission.bytes(), memory.held());
  EXPECT_LT(admission.bytes(), Admission::BytesFor(100000));
  for (uint64_t id = 0; id < 10000; ++id) EXPECT_TRUE(Admit(&admission, id));
}

TEST(AdmissionTest, StaysWithinTheBytesThatItMayTake) {
  FailingMemory memory;
  Admission admission(2, 1 << 20, &kHash, &memory);
  const size_t limit = Admission::BytesFor(64) + 100;
  for (uint64_t id = 0; id < 1000; ++id) Admit(&admission, id, limit);
  EXPECT_EQ(memory.held(), Admission::BytesFor(64));
  // Makes a memory with a limit of 0 bytes, which still has one set.
  Admission small(2, 64, &kHash, &memory);
  EXPECT_FALSE(Admit(&small, 5, 0));
  EXPECT_TRUE(Admit(&small, 5, 0));
}

TEST(AdmissionTest, WithoutMemoryToGrowItEvicts) {
  FailingMemory memory;
  Admission admission(2, 1 << 20, &kHash, &memory);
  Admit(&admission, 0);
  memory.FailAfter(0);
  for (uint64_t id = 0; id < 100; ++id) Admit(&admission, id);
  EXPECT_TRUE(Admit(&admission, 99));
  EXPECT_EQ(memory.held(), Admission::BytesFor(1));
}

TEST(AdmissionTest, NobodyIsAdmittedEarlyHoweverManyComeByTurns) {
  FailingMemory memory;
  Admission admission(2, 64, &kHash, &memory);
  for (uint64_t id = 0; id < 100000; ++id) EXPECT_FALSE(Admit(&admission, id));
  EXPECT_EQ(memory.held(), Admission::BytesFor(64));
}

TEST(AdmissionTest, ThoseOftenSeenOutlastAFloodOfOthers) {
  FailingMemory memory;
  Admission admission(3, 64, &kHash, &memory);
  EXPECT_FALSE(Admit(&admission, 1));
  EXPECT_FALSE(Admit(&admission, 1));
  for (uint64_t id = 100; id < 10100; ++id) Admit(&admission, id);
  EXPECT_TRUE(Admit(&admission, 1));
}

// Tests a full set: pushes each of the eight ids of a set once.
TEST(AdmissionTest, OfThoseSeenAsOftenTheFirstMakesRoom) {
  Admission admission(3, 8, &kHash, SystemMemory());
  for (uint64_t id = 0; id < 9; ++id) EXPECT_FALSE(Admit(&admission, id));
  for (uint64_t id = 1; id < 9; ++id) EXPECT_FALSE(Admit(&admission, id));
  for (uint64_t id = 1; id < 9; ++id) EXPECT_TRUE(Admit(&admission, id)) << id;
  EXPECT_FALSE(Admit(&admission, 0));
}

TEST(AdmissionTest, AnIdThatIsReturnedIsAdmittedByItsNextPush) {
  Admission admission(3, 8, &kHash, SystemMemory());
  for (int push = 0; push < 2; ++push) EXPECT_FALSE(Admit(&admission, 5));
  for (int again = 0; again < 3; ++again) {
    EXPECT_TRUE(Admit(&admission, 5));
    EXPECT_TRUE(admission.Return(5, TagOf(5)));
  }
  Admission all(1, 8, &kHash, SystemMemory());
  EXPECT_FALSE(all.Return(5, TagOf(5)));
}

TEST(AdmissionTest, AdmitsNobodyWithoutMemory) {
  FailingMemory memory;
  Admission admission(2, 64, &kHash, &memory);
  memory.FailAfter(0);
  EXPECT_FALSE(Admit(&admission, 1));
  EXPECT_FALSE(Admit(&admission, 1));
  memory.Heal();
  EXPECT_FALSE(Admit(&admission, 1));
  EXPECT_TRUE(Admit(&admission, 1));
}

std::vector<uint64_t> Between(const Removals& removals, uint32_t since,
                              uint32_t at) {
  std::vector<uint64_t> ids;
  removals.Append(since, at, &ids);
  return ids;
}

using Ids = std::vector<uint64_t>;

TEST(RemovalsTest, GivesThoseOfTheEpochsAsked) {
  FailingMemory memory;
  Removals removals(100, &memory);
  removals.Add(10, 1, kNoLimit);
  removals.Add(20, 2, kNoLimit);
  removals.Add(21, 2, kNoLimit);
  removals.Add(30, 3, kNoLimit);
  EXPECT_EQ(Between(removals, 0, 3), (Ids{10, 20, 21, 30}));
  EXPECT_EQ(Between(removals, 1, 2), (Ids{20, 21}));
  EXPECT_TRUE(removals.CompleteAfter(0));
  removals.Forget(2);
  EXPECT_FALSE(removals.CompleteAfter(1));
  EXPECT_TRUE(removals.CompleteAfter(2));
  EXPECT_EQ(Between(removals, 2, 9), (Ids{30}));
}

TEST(RemovalsTest, KnowsWhatItHasLost) {
  FailingMemory memory;
  Removals removals(3, &memory);
  for (uint32_t epoch = 1; epoch <= 5; ++epoch)
    removals.Add(epoch * 10, epoch, kNoLimit);
  EXPECT_FALSE(removals.CompleteAfter(1));
  EXPECT_TRUE(removals.CompleteAfter(2));
  EXPECT_EQ(Between(removals, 2, 9), (Ids{30, 40, 50}));
  EXPECT_EQ(removals.bytes(), memory.held());
}

TEST(RemovalsTest, WithoutRoomOrMemoryItIsNeverCompleteAfterARemoval) {
  FailingMemory memory;
  Removals none(0, &memory);
  EXPECT_TRUE(none.CompleteAfter(0));
  none.Add(1, 4, kNoLimit);
  EXPECT_FALSE(none.CompleteAfter(3));
  EXPECT_TRUE(none.CompleteAfter(4));
  Removals removals(10, &memory);
  memory.FailAfter(0);
  removals.Add(1, 4, kNoLimit);
  EXPECT_FALSE(removals.CompleteAfter(3));
}

TEST(RemovalsTest, TakesTheBytesThatThereAreAtFirst) {
  FailingMemory memory;
  Removals removals(100, &memory);
  removals.Add(1, 4, 15);
  EXPECT_FALSE(removals.CompleteAfter(3));
  EXPECT_EQ(memory.held(), 0u);
  for (uint64_t id = 0; id < 5; ++id) removals.Add(id, 5, 40);
  EXPECT_EQ(Between(removals, 4, 9), (Ids{3, 4}));
  EXPECT_EQ(memory.held(), Removals::BytesFor(2));
}

}  // namespace
}  // namespace penstock::ps::sparse
