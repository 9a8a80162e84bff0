// Runs random programs of operations, and compares each result with plain
// loops.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "collectives/host/group.h"
#include "collectives/host/pool.h"
#include "collectives/reduction/reduction.h"
#include "gtest/gtest.h"
#include "tensor_service/dtype.h"
#include "tests/collectives/host/ranks.h"
#include "tests/ps/optim/random_values.h"

namespace penstock::collectives {
namespace {

using tensor::DType;
using Random = std::mt19937_64;

// Returns a random number in [0, most], log-uniform.
int64_t Draw(Random* random, int64_t most) {
  const double exponent = std::uniform_real_distribution<double>(
      0, std::log2(static_cast<double>(most) + 2))(*random);
  return std::min(most, static_cast<int64_t>(std::exp2(exponent)) - 1);
}

// Elements on the heap or in the group's pool.
template <typename T>
class Memory {
 public:
  Memory(HostGroup* group, int64_t size, bool in_pool) : size_(size) {
    if (in_pool) {
      auto memory = group->Allocate(std::max<int64_t>(1, size) * sizeof(T));
      EXPECT_TRUE(memory.ok()) << memory.status();
      pool_ = *std::move(memory);
    } else {
      heap_.resize(size);
    }
    std::fill_n(data(), size, T{77});
  }
  // Overwrites the elements, so that a rank that still reads them has a wrong
  // result.
  ~Memory() { std::fill_n(data(), size_, T{99}); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  T* data() {
    return pool_ == nullptr ? heap_.data() : static_cast<T*>(pool_->data());
  }

 private:
  const int64_t size_;
  std::vector<T> heap_;
  std::unique_ptr<PoolMemory> pool_;
};

// An operation on elements of type T, with equal arguments on all ranks.
template <typename T>
class Step {
 public:
  Step(uint64_t seed, HostGroup* group) : random_(seed), group_(*group) {
    kind_ = static_cast<int>(random_() % 8);
    const int64_t most = kMostBytes / static_cast<int64_t>(sizeof(T));
    // Half of the operands are large enough to be read in place.
    int64_t size =
        random_() % 2 == 0
            ? Draw(&random_, most)
            : most / 4 + static_cast<int64_t>(random_() % (most / 2));
    count_ = has_blocks() ? size / group->ranks() : size;
    size = has_blocks() ? count_ * group->ranks() : size;
    root_ = static_cast<int>(random_() % group->ranks());
    op_ = random_() % 2 == 0 ? ReduceOp::kSum : ReduceOp::kMin;
    in_place_ = DrawForRank();
    in_pool_ = DrawForRank();
    out_in_pool_ = DrawForRank();
    for (int rank = 0; rank < group->ranks(); ++rank) {
      inputs_.push_back(Values(size));
    }
  }

  // Runs the operation. Returns "", or a description of the first error.
  std::string Run() {
    const std::vector<T>& input = inputs_[group_.rank()];
    const auto size = static_cast<int64_t>(input.size());
    Memory<T> in(&group_, size, in_pool_);
    // The output of an operation in place is also the input.
    Memory<T> out(&group_, count_ * group_.ranks(),
                  in_place_ && !has_blocks() ? in_pool_ : out_in_pool_);
    const Places places = PlacesOf(in.data(), out.data());
    std::copy(input.begin(), input.end(), places.in);
    const absl::Status status = Call(places);
    if (!status.ok()) return absl::StrCat(Text(), status.message());
    if (!IsExpected(places.out)) return absl::StrCat(Text(), "is wrong");
    if (!overwrites_input() &&
        !std::equal(input.begin(), input.end(), places.in)) {
      return absl::StrCat(Text(), "has changed its input");
    }
    const int64_t used = places.out == out.data() ? ResultCount() : 0;
    const int64_t unused = count_ * group_.ranks() - used;
    if (std::count(out.data() + used, out.data() + used + unused, T{77}) !=
        unused) {
      return absl::StrCat(Text(), "has written past its result");
    }
    return "";
  }

 private:
  static constexpr DType kType = tensor::DTypeOf<T>::kValue;
  // Limits the operands.
  static constexpr int64_t kMostBytes = 192 * 1024;

  struct Places {
    T* in;
    T* out;
  };

  // Returns true on all ranks, on some, or on none. Most often on all.
  bool DrawForRank() {
    const uint64_t some = random_();
    const uint64_t masks[] = {~uint64_t{0}, ~uint64_t{0}, some, 0};
    return (masks[random_() % 4] >> group_.rank() & 1) != 0;
  }

  // True if each operand consists of a block for each rank.
  bool has_blocks() const { return kind_ == 3 || kind_ >= 6; }
  bool is_root() const { return group_.rank() == root_; }
  bool overwrites_input() const {
    return kind_ == 2 ||
           (in_place_ && (kind_ == 0 || (kind_ == 1 && is_root())));
  }

  // Returns the places of this rank's input and output: apart, or in the way
  // that the operation allows.
  Places PlacesOf(T* in, T* out) const {
    if (kind_ == 2) return {in, in};
    if (!in_place_) return {in, out};
    if (kind_ == 0 || (kind_ == 1 && is_root())) return {out, out};
    if (kind_ == 4 || (kind_ == 5 && is_root())) {
      return {out + group_.rank() * count_, out};
    }
    if (kind_ == 6 && is_root()) return {in, in + root_ * count_};
    return {in, out};
  }

  std::vector<T> Values(int64_t size) {
    std::vector<T> values(size);
    uint64_t state = random_();
    for (T& value : values) {
      // Knuth's MMIX generator, because most of the test is this loop.
      state = state * 6364136223846793005U + 1442695040888963407U;
      value = static_cast<T>(static_cast<int32_t>(state >> 40)) / T{3};
    }
    return values;
  }

  std::string Text() const {
    return absl::StrCat("operation ", kind_, " of ", count_, " elements on ",
                        group_.ranks(), " ranks, rank ", group_.rank(),
                        in_pool_ ? ", in the pool" : "",
                        in_place_ ? ", in place: " : ": ");
  }

  absl::Status Call(const Places& at) {
    switch (kind_) {
      case 0:
        return group_.AllReduce(op_, kType, at.in, at.out, count_);
      case 1:
        return group_.Reduce(op_, kType, at.in, at.out, count_, root_);
      case 2:
        return group_.Broadcast(kType, at.out, count_, root_);
      case 3:
        return group_.ReduceScatter(op_, kType, at.in, at.out, count_);
      case 4:
        return group_.AllGather(kType, at.in, at.out, count_);
      case 5:
        return group_.Gather(kType, at.in, at.out, count_, root_);
      case 6:
        return group_.Scatter(kType, is_root() ? at.in : nullptr, at.out,
                              count_, root_);
      default:
        return group_.AllToAll(kType, at.in, at.out, count_);
    }
  }

  // Reduces element `i` in the order of the ranks.
  T Reduced(int64_t i) const {
    T result = inputs_[0][i];
    for (size_t rank = 1; rank < inputs_.size(); ++rank) {
      const T next = inputs_[rank][i];
      if (op_ == ReduceOp::kSum) {
        result = static_cast<T>(result + next);
      } else {
        result = std::min(result, next);
      }
    }
    return result;
  }

  int64_t ResultCount() const {
    if ((kind_ == 1 || kind_ == 5) && !is_root()) return 0;
    const bool has_all = kind_ == 4 || kind_ == 5 || kind_ == 7;
    return has_all ? count_ * group_.ranks() : count_;
  }

  // Returns element `i` of this rank's result.
  T Expected(int64_t i) const {
    const int64_t own = group_.rank() * count_;
    switch (kind_) {
      case 0:
      case 1:
        return Reduced(i);
      case 2:
        return inputs_[root_][i];
      case 3:
        return Reduced(own + i);
      case 4:
      case 5:
        return inputs_[i / count_][i % count_];
      case 6:
        return inputs_[root_][own + i];
      default:
        return inputs_[i / count_][own + i % count_];
    }
  }

  bool IsExpected(const T* out) const {
    for (int64_t i = 0; i < ResultCount(); ++i) {
      const T expected = Expected(i);
      if (std::memcmp(&out[i], &expected, sizeof(T)) != 0) return false;
    }
    return true;
  }

  Random random_;
  HostGroup& group_;
  int kind_;
  int64_t count_;
  int root_;
  ReduceOp op_;
  bool in_place_;
  bool in_pool_;
  bool out_in_pool_;
  std::vector<std::vector<T>> inputs_;  // inputs of all ranks
};

std::string RunStep(uint64_t seed, HostGroup* group) {
  switch (seed % 4) {
    case 0:
      return Step<float>(seed, group).Run();
    case 1:
      return Step<double>(seed, group).Run();
    case 2:
      return Step<int16_t>(seed, group).Run();
    default:
      return Step<uint8_t>(seed, group).Run();
  }
}

TEST(RandomPrograms, GiveTheResultsOfPlainLoops) {
  Random random(ps::optim::NewSeed());
  // Stops early on a slow machine or with a sanitizer.
  const absl::Time end = absl::Now() + absl::Seconds(5);
  for (int program = 0; program < 12 && !testing::Test::HasFailure();
       ++program) {
    if (program > 0 && absl::Now() > end) break;
    HostGroupOptions options;
    options.ranks = 1 + static_cast<int>(random() % 6);
    options.slot_bytes = kMinSlotBytes << random() % 7;
    options.pool_bytes = 4 << 20;
    const uint64_t seed = random();
    RunRanks(options, [&](HostGroup* group) {
      for (uint64_t step = 0; step < 40; ++step) {
        const std::string error = RunStep(seed + step, group);
        EXPECT_EQ(error, "");
        if (!error.empty()) return;
      }
    });
  }
}

}  // namespace
}  // namespace penstock::collectives
