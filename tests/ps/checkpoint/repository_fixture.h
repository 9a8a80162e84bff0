// A fixture with a repository in memory.

#ifndef PENSTOCK_TESTS_PS_CHECKPOINT_REPOSITORY_FIXTURE_H_
#define PENSTOCK_TESTS_PS_CHECKPOINT_REPOSITORY_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "ps/checkpoint/chain.h"
#include "ps/checkpoint/repository.h"
#include "tests/ps/checkpoint/memory_files.h"
#include "tests/ps/checkpoint/world.h"

namespace penstock::ps::checkpoint {

using Steps = std::vector<uint64_t>;

class RepositoryTest : public testing::Test {
 protected:
  void SetUp() override { Reopen(); }

  void Reopen() {
    repository_.reset();
    auto repository = Repository::Open(&files_);
    ASSERT_TRUE(repository.ok()) << repository.status();
    repository_ = *std::move(repository);
  }

  absl::Status Write(uint64_t step,
                     absl::optional<uint64_t> base = absl::nullopt) {
    return world_.Write(&files_, repository_.get(), step, 2, base);
  }

  Steps List() { return *ListSteps(&files_); }

  // Begins a checkpoint and writes its shards.
  std::vector<ShardInfo> Shards(uint64_t step) {
    const auto attempt = repository_->Begin(world_.Describe(step, 2, {}));
    EXPECT_TRUE(attempt.ok()) << attempt.status();
    return {*world_.WriteShard(&files_, *attempt, 0, 2, false),
            *world_.WriteShard(&files_, *attempt, 1, 2, false)};
  }

  MemoryFiles files_;
  World world_;
  std::unique_ptr<Repository> repository_;
};

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_TESTS_PS_CHECKPOINT_REPOSITORY_FIXTURE_H_
