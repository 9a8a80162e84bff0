// Tests the beginning of a training at servers in this process: either all
// servers restore one cut, or none does.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "ps/checkpoint/format.h"
#include "ps/client/checkpoint.h"
#include "ps/client/define.h"
#include "ps/client/worker.h"
#include "tests/ps/checkpoint/memory_files.h"
#include "tests/ps/service/node.h"

namespace penstock::ps {
namespace {

using checkpoint::MemoryFiles;
using ::testing::HasSubstr;

// A source whose restore waits for Release().
class HeldSource final : public RestoreSource {
 public:
  explicit HeldSource(checkpoint::Files* files) : source_(RestoreFrom(files)) {}

  void Release() { released_.Notify(); }
  absl::StatusOr<absl::optional<CutId>> Choose(bool verifies) override {
    return source_->Choose(verifies);
  }
  absl::Status Check(const absl::optional<CutId>& cut) override {
    return source_->Check(cut);
  }
  absl::StatusOr<RestoredModel> Restore(const CutId& cut,
                                        Tables* tables) override {
    released_.WaitForNotification();
    return source_->Restore(cut, tables);
  }

 private:
  const std::shared_ptr<RestoreSource> source_;
  absl::Notification released_;
};

// A source whose checkpoint 2 is damaged and whose checkpoint 1 is good. Only
// reading the damaged file shows the damage.
class DamagedSource final : public RestoreSource {
 public:
  DamagedSource(checkpoint::Files* files, bool reads_damage)
      : newest_(RestoreFrom(files)),
        good_(RestoreFrom(files, 1)),
        reads_damage_(reads_damage) {}

  absl::StatusOr<absl::optional<CutId>> Choose(bool verifies) override {
    return (verifies ? good_ : newest_)->Choose(verifies);
  }
  absl::Status Check(const absl::optional<CutId>& cut) override {
    return newest_->Check(cut);
  }
  absl::StatusOr<RestoredModel> Restore(const CutId& cut,
                                        Tables* tables) override {
    if (reads_damage_ && cut.step == 2) return absl::DataLossError("damaged");
    return newest_->Restore(cut, tables);
  }

 private:
  const std::shared_ptr<RestoreSource> newest_;
  const std::shared_ptr<RestoreSource> good_;
  const bool reads_damage_;
};

class RestoreTest : public testing::Test {
 protected:
  RestoreTest() {
    model_.tables.resize(1);
    model_.tables[0].name = "rows";
    SparseSpec rows;
    rows.dim = 1;
    model_.tables[0].rows = rows;
    model_.tables[0].optimizer.schedule.learning_rate = 1;
  }
  void TearDown() override {
    worker_ = nullptr;
    nodes_.clear();
  }

  static Node::Options On(MemoryFiles* files, bool restore) {
    Node::Options options;
    options.files = files;
    options.restore = restore;
    return options;
  }

  // Starts server `at`. Replaces an existing server.
  void StartNode(size_t at, const Node::Options& options) {
    if (at == nodes_.size()) nodes_.emplace_back();
    nodes_[at] = nullptr;
    nodes_[at] = std::make_unique<Node>(options);
  }
  // Returns a definition in which servers keep their names even if their ports
  // change.
  Definition DefinitionOf(absl::Duration timeout = absl::Minutes(1)) const {
    Definition definition;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      definition.servers.push_back(nodes_[i]->Connect());
      definition.addresses.push_back(absl::StrCat("ps", i, ":1"));
    }
    definition.model = model_;
    definition.timeout = timeout;
    return definition;
  }
  // Acts as a chief that has defined the model only at server `at`, with a cut,
  // and has died.
  void DefineOnly(size_t at, const absl::optional<CutId>& cut, uint64_t run) {
    const Definition whole = DefinitionOf();
    Server::Definition definition;
    definition.model = model_;
    definition.servers = whole.addresses;
    definition.server = static_cast<uint32_t>(at);
    definition.run = run;
    definition.cut = cut;
    const auto defined = nodes_[at]->core().Define(definition);
    ASSERT_TRUE(defined.ok()) << defined.status();
  }
  void Begin() {
    auto defined = Define(DefinitionOf());
    ASSERT_TRUE(defined.ok()) << defined.status();
    defined_ = *std::move(defined);
    Worker::Options worker;
    worker.connection = defined_.connection;
    auto joined = Worker::Join(worker);
    ASSERT_TRUE(joined.ok()) << joined.status();
    worker_ = *std::move(joined);
    next_step_ = worker_->clock();
  }
  void Step() {
    StepGradients gradients;
    auto values = *tensor::Tensor::Of<float>({1, 1}, {1});
    gradients.rows = {{"rows", {7}, std::move(values)}};
    const auto pushed = worker_->Push(next_step_++, gradients);
    ASSERT_TRUE(pushed.ok()) << pushed.status();
    ASSERT_TRUE(worker_->Pull(next_step_).ok());
  }
  // Leaves checkpoints of two servers in `files`, one after each step.
  void Train(MemoryFiles* files, int steps = 1) {
    StartNode(0, On(files, false));
    StartNode(1, On(files, false));
    Begin();
    for (int i = 0; i < steps; ++i) {
      Step();
      const auto taken = TakeCheckpoint(*defined_.connection, {});
      ASSERT_TRUE(taken.ok()) << taken.status();
    }
    worker_ = nullptr;
  }

  Model model_;
  MemoryFiles files_;
  MemoryFiles empty_;
  std::vector<std::unique_ptr<Node>> nodes_;
  Defined defined_;
  std::unique_ptr<Worker> worker_;
  uint64_t next_step_ = 0;
};

TEST_F(RestoreTest, ServersWithDifferentFoldersAreRefused) {
  Train(&files_);
  for (const size_t empty : {0, 1}) {
    StartNode(empty, On(&empty_, true));
    StartNode(1 - empty, On(&files_, true));
    const absl::Status status = Define(DefinitionOf()).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("server 1 (ps1:1)"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("step-0000000001"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("no checkpoint"));
  }
}

TEST_F(RestoreTest, ServerThatIsNotToRestoreIsRefusedBesideOneThatIs) {
  Train(&files_);
  for (const size_t without : {0, 1}) {
    StartNode(without, On(&files_, false));
    StartNode(1 - without, On(&files_, true));
    const absl::Status status = Define(DefinitionOf()).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("server 1 (ps1:1)"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("--restore"));
  }
}

// Tests two trainings that have reached the same step.
TEST_F(RestoreTest, CutOfTheSameStepAndAnotherTrainingIsRefused) {
  Train(&empty_);
  Train(&files_);
  StartNode(0, On(&files_, true));
  StartNode(1, On(&empty_, true));
  const absl::Status status = Define(DefinitionOf()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("expected step-0000000001 (cut "));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("found step-0000000001 (cut "));
}

TEST_F(RestoreTest, AnyChiefGoesOnAfterOneThatDiedBetweenServers) {
  Train(&files_);
  for (const size_t defined : {0, 1}) {
    StartNode(0, On(&files_, true));
    StartNode(1, On(&files_, true));
    const auto choice = nodes_[0]->core().ChooseCut(77);
    ASSERT_TRUE(choice.ok()) << choice.status();
    ASSERT_NO_FATAL_FAILURE(DefineOnly(defined, choice->cut, 77));
    ASSERT_NO_FATAL_FAILURE(Begin());
    EXPECT_EQ(defined_.restored_step, 1u);
    EXPECT_FALSE(defined_.wants_values);
    EXPECT_EQ(defined_.connection->run(), 77u);
    EXPECT_EQ(worker_->clock(), 1u);
    worker_ = nullptr;
  }
}

// Tests sparse tables, which need no initial values from a worker.
TEST_F(RestoreTest, FirstStartOfSparseTablesGoesOnAfterAChiefThatDied) {
  StartNode(0, On(&files_, false));
  StartNode(1, On(&files_, false));
  ASSERT_NO_FATAL_FAILURE(DefineOnly(0, absl::nullopt, 77));
  ASSERT_NO_FATAL_FAILURE(Begin());
  EXPECT_EQ(defined_.connection->run(), 77u);
}

// Tests a server that died after the others had restored, and that was
// restarted with other flags.
TEST_F(RestoreTest, ServerThatHasBegunWithAnotherCutTakesTheOneOfServer0) {
  Train(&files_, 2);
  StartNode(1, On(&files_, true));
  const auto newest = RestoreFrom(&files_)->Choose(true);
  ASSERT_TRUE(newest.ok());
  ASSERT_EQ((*newest)->step, 2u);
  ASSERT_NO_FATAL_FAILURE(DefineOnly(1, *newest, 77));
  Node::Options older = On(&files_, false);
  older.source = RestoreFrom(&files_, 1);
  StartNode(0, older);
  ASSERT_NO_FATAL_FAILURE(Begin());
  EXPECT_EQ(defined_.restored_step, 1u);
  EXPECT_EQ(worker_->clock(), 1u);
}

// Tests damage that one server finds after the others have restored the damaged
// checkpoint. All servers must restore an older one.
TEST_F(RestoreTest, DamageThatOneServerFindsMakesAllGoBack) {
  Train(&files_, 2);
  for (const size_t finds : {0, 1}) {
    for (const size_t at : {0, 1}) {
      Node::Options options = On(&files_, false);
      options.source = std::make_shared<DamagedSource>(&files_, at == finds);
      StartNode(at, options);
    }
    ASSERT_NO_FATAL_FAILURE(Begin());
    EXPECT_EQ(defined_.restored_step, 1u);
    EXPECT_EQ(worker_->clock(), 1u);
    worker_ = nullptr;
  }
}

// Tests that all servers pass over a checkpoint that is damaged where only a
// restore reads it.
TEST_F(RestoreTest, DamagedCheckpointIsPassedOverByAllServers) {
  Train(&files_, 2);
  std::string* rows = nullptr;  // the shard that has the row
  for (const auto& [path, bytes] : files_.Contents()) {
    if (!absl::StartsWith(path, "step-0000000002/shard")) continue;
    if (rows == nullptr || bytes.size() > rows->size()) {
      rows = files_.Bytes(path);
    }
  }
  (*rows)[checkpoint::kFileHeaderBytes + checkpoint::kBlockHeaderBytes] ^= 1;
  ASSERT_EQ((*RestoreFrom(&files_)->Choose(false))->step, 2u);
  StartNode(0, On(&files_, true));
  StartNode(1, On(&files_, true));
  ASSERT_NO_FATAL_FAILURE(Begin());
  EXPECT_EQ(defined_.restored_step, 1u);
}

// Tests a damaged checkpoint whose step the caller has named. The error must be
// reported, and no other checkpoint may be used.
TEST_F(RestoreTest, DamageOfTheOnlyChoiceIsReported) {
  Train(&files_, 1);
  StartNode(0, On(&files_, true));
  Node::Options damaged = On(&files_, false);
  class Source final : public RestoreSource {
   public:
    explicit Source(checkpoint::Files* files) : source_(RestoreFrom(files)) {}
    absl::StatusOr<absl::optional<CutId>> Choose(bool verifies) override {
      return source_->Choose(verifies);
    }
    absl::Status Check(const absl::optional<CutId>& cut) override {
      return source_->Check(cut);
    }
    absl::StatusOr<RestoredModel> Restore(const CutId&, Tables*) override {
      return absl::DataLossError("damaged");
    }

   private:
    const std::shared_ptr<RestoreSource> source_;
  };
  damaged.source = std::make_shared<Source>(&files_);
  StartNode(1, damaged);
  const absl::Status status = Define(DefinitionOf()).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("server 1 (ps1:1)"));
}

TEST_F(RestoreTest, RunsOfTwoChiefsBecomeThatOfServer0) {
  StartNode(0, On(&files_, false));
  StartNode(1, On(&files_, false));
  ASSERT_NO_FATAL_FAILURE(DefineOnly(0, absl::nullopt, 77));
  ASSERT_NO_FATAL_FAILURE(DefineOnly(1, absl::nullopt, 78));
  ASSERT_NO_FATAL_FAILURE(Begin());
  EXPECT_EQ(defined_.connection->run(), 77u);
  ASSERT_NO_FATAL_FAILURE(Step());
}

TEST_F(RestoreTest, ServerThatIsStartedAnewAfterAStepHasLostValues) {
  StartNode(0, On(&files_, false));
  StartNode(1, On(&files_, false));
  ASSERT_NO_FATAL_FAILURE(Begin());
  StartNode(1, On(&files_, false));
  ASSERT_NO_FATAL_FAILURE(Begin());  // works, because nothing was trained
  ASSERT_NO_FATAL_FAILURE(Step());
  StartNode(1, On(&files_, false));
  const absl::Status status = Define(DefinitionOf()).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("server 1 (ps1:1)"));
}

// Tests a folder from which training A has restored. Training B must not
// restore from the same folder, because the checkpoints of A and B would
// collide.
TEST_F(RestoreTest, FolderIsOfOneTrainingFromTheRestoreOn) {
  Train(&files_);
  StartNode(0, On(&files_, true));
  StartNode(1, On(&files_, true));
  ASSERT_NO_FATAL_FAILURE(Begin());
  const Node other(On(&files_, true));
  Definition definition = DefinitionOf();
  definition.servers = {other.Connect()};
  definition.addresses = {"other:1"};
  const absl::Status status = Define(definition).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  ASSERT_NO_FATAL_FAILURE(Step());
  EXPECT_TRUE(TakeCheckpoint(*defined_.connection, {}).ok());
}

// Tests chiefs whose timeouts end while the servers restore.
TEST_F(RestoreTest, ChiefsOfShortPatienceEndWithARestoredTraining) {
  Train(&files_);
  auto held = std::make_shared<HeldSource>(&files_);
  for (const size_t i : {0, 1}) {
    Node::Options options = On(&files_, false);
    options.source = held;
    StartNode(i, options);
  }
  for (int chief = 0; chief < 3; ++chief) {
    EXPECT_FALSE(Define(DefinitionOf(absl::Milliseconds(50))).ok());
  }
  held->Release();
  ASSERT_NO_FATAL_FAILURE(Begin());
  EXPECT_EQ(defined_.restored_step, 1u);
  EXPECT_EQ(worker_->clock(), 1u);
}

}  // namespace
}  // namespace penstock::ps
