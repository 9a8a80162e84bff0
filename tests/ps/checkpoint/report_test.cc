#include "ps/checkpoint/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/match.h"
#include "ps/checkpoint/names.h"
#include "ps/checkpoint/repository.h"
#include "tests/ps/checkpoint/memory_files.h"
#include "tests/ps/checkpoint/world.h"

namespace penstock::ps::checkpoint {
namespace {

using Json = nlohmann::json;

class ReportTest : public testing::Test {
 protected:
  void SetUp() override {
    auto repository = Repository::Open(&files_);
    World world;
    ASSERT_TRUE(world.Write(&files_, repository->get(), 1, 2).ok());
    world.Clean();
    world.ChangeLittle();
    ASSERT_TRUE(world.Write(&files_, repository->get(), 2, 2, 1).ok());
  }

  void Damage() {
    const auto manifest = ReadManifest(&files_, 1);
    (*files_.Bytes(ShardPath(1, 0, manifest->attempt.id)))[100] ^= 1;
  }

  MemoryFiles files_;
};

TEST_F(ReportTest, ListsTheNewestFirst) {
  const auto report = Inspect(&files_, absl::nullopt, Form::kText);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->is_good);
  EXPECT_TRUE(absl::StartsWith(
      report->text,
      "step-0000000002  2025-11-24 16:00:00 UTC  on step-0000000001  2 shards"))
      << report->text;
  const auto json =
      Json::parse(Inspect(&files_, absl::nullopt, Form::kJson)->text);
  ASSERT_EQ(json["checkpoints"].size(), 2u);
  EXPECT_EQ(json["checkpoints"][0]["base_step"], 1);
  EXPECT_EQ(json["checkpoints"][1]["depth"], 0);
  const uint64_t bytes = json["checkpoints"][0]["bytes"].get<uint64_t>() +
                         json["checkpoints"][1]["bytes"].get<uint64_t>();
  EXPECT_EQ(json["bytes"], bytes);
  EXPECT_TRUE(absl::StrContains(report->text, "\ntogether: ")) << report->text;
}

TEST_F(ReportTest, TellsWhatIsInOne) {
  const auto report = Inspect(&files_, 1, Form::kText);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(absl::StrContains(report->text,
                                "large: dense f32 [40, 7], slot m f32, slot v "
                                "f32: 40 rows in 2 parts"))
      << report->text;
  // Expects escaped names. Names come from users, and must not control a
  // terminal.
  EXPECT_TRUE(absl::StrContains(report->text, "../../etc/passwd\\x0a\\xff"))
      << report->text;
  EXPECT_TRUE(absl::StrContains(Inspect(&files_, 2, Form::kText)->text,
                                "large: dense f32 [40, 7], slot m f32, slot v "
                                "f32: unchanged since the base"));
  const auto json = Json::parse(Inspect(&files_, 1, Form::kJson)->text);
  ASSERT_EQ(json["tables"].size(), 6u);
  EXPECT_EQ(json["tables"][0]["rows"], 40);
  EXPECT_EQ(json["clocks"][1]["incarnation"], UINT64_MAX);
  EXPECT_TRUE(absl::IsNotFound(Inspect(&files_, 9, Form::kText).status()));
}

TEST_F(ReportTest, VerifiesTheNewestOrTheOneThatIsNamed) {
  auto report = VerifyAndReport(&files_, absl::nullopt, Form::kText);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->is_good);
  EXPECT_TRUE(absl::StrContains(report->text, "step-0000000002: good"));
  EXPECT_TRUE(absl::StrContains(report->text, "of a chain of 2"));
  Damage();
  report = VerifyAndReport(&files_, 1, Form::kText);
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->is_good);
  EXPECT_TRUE(absl::StrContains(report->text,
                                "block 1 of 3 of table 'large': the checksum"))
      << report->text;
  EXPECT_TRUE(absl::StrContains(report->text, "step-0000000001: DAMAGED"));
  const auto json = Json::parse(VerifyAndReport(&files_, 2, Form::kJson)->text);
  EXPECT_EQ(json["good"], false);
  EXPECT_EQ(json["damages"][0]["step"], 1);
  EXPECT_EQ(json["damages"][0]["table"], "large");
  EXPECT_EQ(json["damages"][0]["block"], 1);
}

TEST_F(ReportTest, ABadOneIsListedAsBad) {
  *files_.Bytes(ManifestPath(2)) = "damaged";
  const auto report = Inspect(&files_, absl::nullopt, Form::kText);
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->is_good);
  EXPECT_TRUE(absl::StrContains(report->text, "step-0000000002  BAD: "))
      << report->text;
}

TEST_F(ReportTest, AnEmptyRootIsSaid) {
  MemoryFiles empty;
  EXPECT_EQ(Inspect(&empty, absl::nullopt, Form::kText)->text,
            "no checkpoint\n");
  EXPECT_TRUE(absl::IsNotFound(
      VerifyAndReport(&empty, absl::nullopt, Form::kText).status()));
}

}  // namespace
}  // namespace penstock::ps::checkpoint
