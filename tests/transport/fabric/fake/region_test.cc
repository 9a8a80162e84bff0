// Tests bytes that one end of a fake link exposes, and the other end reads or
// loads.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/fake/fake_test_util.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/fake/link.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace fake {
namespace {

TEST_F(FakeLinkTest, ReadsCopyWhenTheyComplete) {
  const RemotePart part = PartOfLetters(90);
  std::string into(40, '.');
  Read(b_.get(), part, 20, &into, 7);
  EXPECT_EQ(into, std::string(40, '.'));
  EXPECT_TRUE(b_->HasInput());
  EXPECT_TRUE(b_->Poll());
  EXPECT_EQ(at_b_.Take(), Lines{"read 7 OK"});
  for (size_t i = 0; i < 40; ++i) EXPECT_EQ(into[i], 'a' + char((i + 20) % 26));
  EXPECT_EQ(link_.counters(Side::kB).reads, 1u);
  EXPECT_EQ(link_.counters(Side::kB).read_bytes, 40u);
  EXPECT_EQ(link_.exposed(Side::kA), 1u);
}

TEST_F(FakeLinkTest, ReadsOutsideOfWhatIsExposedFail) {
  const RemotePart good = PartOfLetters(10);
  std::string into(4, '.');
  uint64_t cookie = 0;
  Read(b_.get(), good, 7, &into, ++cookie);
  Read(b_.get(), good, 11, &into, ++cookie);
  Read(b_.get(), good, ~uint64_t{0}, &into, ++cookie);
  Read(b_.get(), RemotePart{good.key, 0, 10}, 0, &into, ++cookie);
  Read(b_.get(), RemotePart{good.key, good.offset, 11}, 0, &into, ++cookie);
  Read(b_.get(), RemotePart{good.key + 1, good.offset, 10}, 0, &into, ++cookie);
  Read(a_.get(), good, 0, &into, ++cookie);  // a region of this end
  std::string large(4097, '.');
  Read(b_.get(), good, 0, &large, ++cookie);
  EXPECT_EQ(link_.StepAll(), 8);
  Lines lines = at_b_.Take();
  for (const std::string& line : at_a_.Take()) lines.push_back(line);
  EXPECT_EQ(lines.size(), 8u);
  for (const std::string& line : lines) {
    EXPECT_NE(line.find("failed"), std::string::npos) << line;
  }
  EXPECT_EQ(into, "....");
}

TEST_F(FakeLinkTest, WithdrawnRegionCannotBeRead) {
  const RemotePart part = PartOfLetters(10);
  std::string into(4, '.');
  Read(b_.get(), part, 0, &into, 1);
  a_->Withdraw({part});
  a_->Withdraw({part});
  b_->Poll();
  EXPECT_EQ(at_b_.Take(), Lines{"read 1 failed"});
  EXPECT_EQ(link_.exposed(Side::kA), 0u);
}

TEST_F(FakeLinkTest, CompletionsOfReadsCanBeReordered) {
  const RemotePart part = PartOfLetters(10);
  std::string into(3, '.');
  for (uint64_t i = 0; i < 3; ++i) Read(b_.get(), part, i, &into, i);
  Send(a_.get(), "x");
  link_.SetReadOrder(Side::kB, [](size_t waiting) { return waiting - 1; });
  link_.StepAll();
  EXPECT_EQ(at_b_.Take(),
            (Lines{"read 2 OK", "read 1 OK", "read 0 OK", "packet x"}));
}

TEST_F(FakeLinkTest, NthReadFailsAndTheLinkStays) {
  const RemotePart part = PartOfLetters(10);
  link_.FailNthRead(Side::kB, 2);
  std::string into(3, '.');
  for (uint64_t i = 1; i <= 3; ++i) Read(b_.get(), part, 0, &into, i);
  link_.StepAll();
  EXPECT_EQ(at_b_.Take(), (Lines{"read 1 OK", "read 2 failed", "read 3 OK"}));
}

TEST_F(FakeLinkTest, NthExposeFindsNoRoom) {
  link_.FailNthExpose(Side::kA, 2);
  EXPECT_TRUE(ExposeLetters(9).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(ExposeLetters(9).status()));
  EXPECT_TRUE(ExposeLetters(9).ok());
}

TEST_F(FakeLinkTest, LoadNeedsTheCapability) {
  const RemotePart part = PartOfLetters(10);
  EXPECT_TRUE(absl::IsUnimplemented(b_->Load({part}).status()));
}

class Loading : public FakeLinkTest {
 protected:
  static LinkOptions Options() {
    LinkOptions options;
    options.can_load = true;
    return options;
  }
  Loading() : FakeLinkTest(Options()) {}
};

TEST_F(Loading, LoadedBytesAreThoseThatAreLent) {
  Exposure exposure = ExposeLetters(100).value();
  ASSERT_EQ(exposure.stable.pieces().size(), 1u);
  memory::Bytes bytes = b_->Load(exposure.region).value().pieces()[0];
  EXPECT_EQ(bytes.data, exposure.stable.pieces()[0].data);
  EXPECT_EQ(bytes.size, 100u);
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(bytes.data[i], 'a' + i % 26);
  EXPECT_EQ(link_.counters(Side::kB).loads, 1u);
}

TEST_F(Loading, LoansComeBackWithTheLastShare) {
  const RemotePart part = PartOfLetters(100);
  memory::Bytes bytes = b_->Load({part}).value().pieces()[0];
  memory::Bytes share = bytes.Part(5, 1);
  EXPECT_EQ(link_.loans(Side::kB), 1);
  bytes = memory::Bytes();
  a_->Withdraw({part});
  a_.reset();
  b_.reset();
  EXPECT_EQ(link_.loans(Side::kB), 1);
  EXPECT_EQ(share.data[0], 'f');
  share = memory::Bytes();
  EXPECT_EQ(link_.loans(Side::kB), 0);
}

TEST_F(Loading, WithdrawnOrForeignRegionIsNotLoaded) {
  const RemotePart part = PartOfLetters(100);
  EXPECT_FALSE(b_->Load({RemotePart{part.key, part.offset, 101}}).ok());
  EXPECT_FALSE(b_->Load({RemotePart{part.key, 0, 100}}).ok());
  EXPECT_FALSE(a_->Load({part}).ok());
  a_->Withdraw({part});
  EXPECT_TRUE(absl::IsNotFound(b_->Load({part}).status()));
  EXPECT_EQ(link_.loans(Side::kB), 0);
}

}  // namespace
}  // namespace fake
}  // namespace fabric
}  // namespace penstock
