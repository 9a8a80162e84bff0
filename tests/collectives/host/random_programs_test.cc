// Runs random programs of operations, and compares each result with plain
// loops.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "collectives/host/group.h"
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

// An operation on elements of type T, with equal arguments on all ranks.
template <typename T>
class Step {
 public:
  Step(uint64_t seed, HostGroup* group) : random_(seed), group_(*group) {
    kind_ = static_cast<int>(random_() % 8);
    count_ = Draw(&random_, 20'000);
    root_ = static_cast<int>(random_() % group->ranks());
    op_ = random_() % 2 == 0 ? ReduceOp::kSum : ReduceOp::kMin;
    in_place_ = random_() % 2 == 0;
    // Puts the memory into the pool on all ranks, on some, or on none.
    const uint64_t pools[] = {~uint64_t{0}, random_(), 0};
    in_pool_ = pools[random_() % 3] >> group->rank() & 1;
    const bool has_blocks = kind_ >= 3 && kind_ != 4;
    const int64_t size = has_blocks ? count_ * group->ranks() : count_;
    for (int rank = 0; rank < group->ranks(); ++rank) {
      inputs_.push_back(Values(size));
    }
  }

  // Runs the operation. Returns "", or a description of the first error.
  std::string Run() {
    std::vector<T> in = inputs_[group_.rank()];
    std::vector<T> out(count_ * group_.ranks(), T{77});
    const bool uses_pool =
        in_pool_ && (kind_ == 2 || (kind_ == 0 && in_place_));
    const absl::Status status =
        uses_pool ? CallInPool(in, &out) : Call(&in, &out);
    if (!status.ok()) return absl::StrCat(Text(), status.message());
    const std::vector<T> expected = Expected();
    if (std::memcmp(out.data(), expected.data(), Bytes(expected)) != 0) {
      return absl::StrCat(Text(), "has a wrong result");
    }
    return "";
  }

 private:
  static constexpr DType kType = tensor::DTypeOf<T>::kValue;

  static size_t Bytes(const std::vector<T>& values) {
    return values.size() * sizeof(T);
  }

  std::vector<T> Values(int64_t size) {
    std::vector<T> values(size);
    for (T& value : values) {
      value = static_cast<T>(static_cast<int32_t>(random_() >> 40)) / T{3};
    }
    return values;
  }

  std::string Text() const {
    return absl::StrCat("operation ", kind_, " of ", count_, " elements on ",
                        group_.ranks(), " ranks, rank ", group_.rank(), ": ");
  }

  absl::Status Call(std::vector<T>* in, std::vector<T>* out) {
    switch (kind_) {
      case 0:
        if (in_place_) std::copy(in->begin(), in->end(), out->begin());
        return group_.AllReduce(op_, kType,
                                in_place_ ? out->data() : in->data(),
                                out->data(), count_);
      case 1:
        return group_.Reduce(op_, kType, in->data(), out->data(), count_,
                             root_);
      case 2:
        std::copy(in->begin(), in->end(), out->begin());
        return group_.Broadcast(kType, out->data(), count_, root_);
      case 3:
        return group_.ReduceScatter(op_, kType, in->data(), out->data(),
                                    count_);
      case 4: {
        T* const own = out->data() + group_.rank() * count_;
        if (in_place_) std::copy(in->begin(), in->end(), own);
        return group_.AllGather(kType, in_place_ ? own : in->data(),
                                out->data(), count_);
      }
      case 5:
        return group_.Gather(kType, in->data(), out->data(), count_, root_);
      case 6:
        return group_.Scatter(kType, in->data(), out->data(), count_, root_);
      default:
        return group_.AllToAll(kType, in->data(), out->data(), count_);
    }
  }

  // Returns the memory to the pool. The next operation overwrites it.
  absl::Status CallInPool(const std::vector<T>& in, std::vector<T>* out) {
    auto memory = group_.Allocate(count_ * sizeof(T));
    if (!memory.ok()) return memory.status();
    T* const data = static_cast<T*>((*memory)->data());
    std::copy(in.begin(), in.end(), data);
    const absl::Status status =
        kind_ == 0 ? group_.AllReduce(op_, kType, data, data, count_)
                   : group_.Broadcast(kType, data, count_, root_);
    std::copy(data, data + count_, out->begin());
    std::fill(data, data + count_, T{99});
    return status;
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

  std::vector<T> Expected() const {
    const int rank = group_.rank(), ranks = group_.ranks();
    std::vector<T> out(count_ * ranks, T{77});
    const auto fill = [&](int64_t count, const std::function<T(int64_t)>& of) {
      for (int64_t i = 0; i < count; ++i) out[i] = of(i);
    };
    if (kind_ == 0 || (kind_ == 1 && rank == root_)) {
      fill(count_, [&](int64_t i) { return Reduced(i); });
    } else if (kind_ == 2) {
      fill(count_, [&](int64_t i) { return inputs_[root_][i]; });
    } else if (kind_ == 3) {
      fill(count_, [&](int64_t i) { return Reduced(rank * count_ + i); });
    } else if (kind_ == 4 || (kind_ == 5 && rank == root_)) {
      fill(count_ * ranks,
           [&](int64_t i) { return inputs_[i / count_][i % count_]; });
    } else if (kind_ == 6) {
      fill(count_,
           [&](int64_t i) { return inputs_[root_][rank * count_ + i]; });
    } else if (kind_ == 7) {
      fill(count_ * ranks, [&](int64_t i) {
        return inputs_[i / count_][rank * count_ + i % count_];
      });
    }
    return out;
  }

  Random random_;
  HostGroup& group_;
  int kind_;
  int64_t count_;
  int root_;
  ReduceOp op_;
  bool in_place_;
  bool in_pool_;
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
  for (int program = 0; program < 12 && !testing::Test::HasFailure();
       ++program) {
    HostGroupOptions options;
    options.ranks = 1 + static_cast<int>(random() % 6);
    options.slot_bytes = kMinSlotBytes << random() % 7;
    options.pool_bytes = 1 << 20;
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
