#include "transport/device/staging_pipeline.h"

#include <deque>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace device {
namespace {

using Step = StagingPipeline::Step;
using Steps = StagingPipeline::Steps;

TEST(StagingPipelineTest, TwoSlotsKeepBothStagesAtWork) {
  StagingPipeline pipeline({/*chunks=*/3, /*slots=*/2, /*stages=*/2});
  EXPECT_EQ(pipeline.Start(), (Steps{{0, 0, 0}, {0, 1, 1}}));
  EXPECT_EQ(pipeline.OnDone(0), (Steps{{1, 0, 0}}));
  EXPECT_EQ(pipeline.OnDone(0), (Steps{{1, 1, 1}}));
  // Expects that the first slot is used again.
  EXPECT_EQ(pipeline.OnDone(1), (Steps{{0, 2, 0}}));
  EXPECT_EQ(pipeline.OnDone(0), (Steps{{1, 2, 0}}));
  EXPECT_EQ(pipeline.OnDone(1), Steps());
  EXPECT_FALSE(pipeline.finished());
  EXPECT_EQ(pipeline.OnDone(1), Steps());
  EXPECT_TRUE(pipeline.finished());
  EXPECT_TRUE(pipeline.error().ok());
}

TEST(StagingPipelineTest, NothingToDoIsFinishedAtOnce) {
  StagingPipeline pipeline({/*chunks=*/0, /*slots=*/1, /*stages=*/3});
  EXPECT_EQ(pipeline.Start(), Steps());
  EXPECT_TRUE(pipeline.finished());
}

TEST(StagingPipelineTest, AnErrorBeginsNothingAndWaitsForWhatIsUnderWay) {
  StagingPipeline pipeline({/*chunks=*/5, /*slots=*/2, /*stages=*/2});
  pipeline.Start();
  pipeline.Fail(absl::UnavailableError("first"));
  pipeline.Fail(absl::InternalError("second"));
  EXPECT_FALSE(pipeline.finished());
  EXPECT_EQ(pipeline.OnDone(0), Steps());
  EXPECT_FALSE(pipeline.finished());
  EXPECT_EQ(pipeline.OnDone(0), Steps());
  EXPECT_TRUE(pipeline.finished());
  EXPECT_EQ(pipeline.error().message(), "first");
}

// Runs a pipeline whose stages end steps in random order. Checks the pipeline's
// promises for each chunk separately.
class RandomRun {
 public:
  RandomRun(std::mt19937* random, const StagingPipeline::Shape& shape)
      : random_(*random),
        shape_(shape),
        pipeline_(shape),
        under_way_(shape.stages),
        ended_(shape.chunks, -1),
        owner_of_(shape.slots, kNobody) {}

  void Run() {
    Take(pipeline_.Start());
    while (!pipeline_.finished()) {
      std::vector<int> busy;
      for (int stage = 0; stage < shape_.stages; ++stage) {
        if (!under_way_[stage].empty()) busy.push_back(stage);
      }
      ASSERT_FALSE(busy.empty()) << "it hangs";
      End(busy[random_() % busy.size()]);
    }
    for (int stage : ended_) EXPECT_EQ(stage, shape_.stages - 1);
  }

 private:
  static constexpr size_t kNobody = SIZE_MAX;

  void Take(const Steps& steps) {
    for (const Step& step : steps) {
      EXPECT_EQ(ended_[step.chunk], step.stage - 1);
      if (step.stage == 0) {
        EXPECT_EQ(owner_of_[step.slot], kNobody) << "a slot in use";
        owner_of_[step.slot] = step.chunk;
      }
      EXPECT_EQ(owner_of_[step.slot], step.chunk);
      under_way_[step.stage].push_back(step);
    }
  }

  void End(int stage) {
    const Step step = under_way_[stage].front();
    under_way_[stage].pop_front();
    ended_[step.chunk] = stage;
    if (stage == shape_.stages - 1) owner_of_[step.slot] = kNobody;
    Take(pipeline_.OnDone(stage));
    EXPECT_EQ(pipeline_.is_busy(stage), !under_way_[stage].empty());
  }

  std::mt19937& random_;
  const StagingPipeline::Shape shape_;
  StagingPipeline pipeline_;
  std::vector<std::deque<Step>> under_way_;
  std::vector<int> ended_;  // the last stage of each chunk
  std::vector<size_t> owner_of_;
};

TEST(StagingPipelineTest, EachChunkGoesThroughAllStagesInASlotOfItsOwn) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 2000 && !testing::Test::HasFailure(); ++i) {
    StagingPipeline::Shape shape;
    shape.chunks = random() % 20;
    shape.slots = 1 + random() % 5;
    shape.stages = 1 + random() % 4;
    RandomRun(&random, shape).Run();
  }
}

}  // namespace
}  // namespace device
}  // namespace penstock
