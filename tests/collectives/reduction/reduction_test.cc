// Compares the vectorised reductions with plain loops: over all element types,
// operations, kinds of vectors, and small counts; with random alignments.

#include "collectives/reduction/reduction.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tensor_service/dtype.h"
#include "tests/ps/optim/random_values.h"

namespace penstock::collectives {
namespace {

using ps::optim::NewSeed;
using ps::optim::OnEachTarget;
using tensor::DType;
using Bytes = std::vector<uint8_t>;

constexpr DType kFloats[] = {DType::kF32, DType::kF64, DType::kF16,
                             DType::kBF16};
constexpr DType kIntegers[] = {DType::kInt8,  DType::kInt16, DType::kInt32,
                               DType::kInt64, DType::kUint8, DType::kBool};
constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kProduct, ReduceOp::kMin,
                             ReduceOp::kMax, ReduceOp::kAverage, ReduceOp::kAnd,
                             ReduceOp::kOr,  ReduceOp::kXor};

// A binary floating-point type, by its numbers of bits.
struct FloatType {
  int exponent_bits;
  int digits;  // stored bits
};

FloatType TypeOf(DType dtype) {
  if (dtype == DType::kF16) return {5, 10};
  if (dtype == DType::kBF16) return {8, 7};
  return dtype == DType::kF32 ? FloatType{8, 23} : FloatType{11, 52};
}

long double Decode(DType dtype, uint64_t bits) {
  const FloatType type = TypeOf(dtype);
  const int most = (1 << type.exponent_bits) - 1, bias = most / 2;
  const int exponent = static_cast<int>(bits >> type.digits) & most;
  const uint64_t digits = bits & ((uint64_t{1} << type.digits) - 1);
  const bool negative = bits >> (type.exponent_bits + type.digits) & 1;
  long double value;
  if (exponent == most) {
    value = digits == 0 ? HUGE_VALL : std::nanl("");
  } else if (exponent == 0) {
    value =
        std::ldexp(static_cast<long double>(digits), 1 - bias - type.digits);
  } else {
    value = std::ldexp(
        static_cast<long double>(digits | uint64_t{1} << type.digits),
        exponent - bias - type.digits);
  }
  return negative ? -value : value;
}

// Returns the nearest value of the type, ties to even.
long double Rounded(DType dtype, long double value) {
  if (!std::isfinite(value) || value == 0) return value;
  const FloatType type = TypeOf(dtype);
  const int bias = (1 << (type.exponent_bits - 1)) - 1;
  const int exponent = std::max(std::ilogb(value), 1 - bias);
  const int quantum = exponent - type.digits;
  const long double rounded =
      std::ldexp(std::nearbyint(std::ldexp(value, -quantum)), quantum);
  const long double limit = std::ldexp(1.0L, bias + 1);
  if (std::abs(rounded) < limit) return rounded;
  return std::copysign(HUGE_VALL, value);
}

long double ApplyToFloats(ReduceOp op, long double a, long double b) {
  if (op == ReduceOp::kProduct) return a * b;
  if (op != ReduceOp::kMin && op != ReduceOp::kMax) return a + b;
  if (std::isnan(a) || std::isnan(b)) return std::nanl("");
  return op == ReduceOp::kMin ? std::min(a, b) : std::max(a, b);
}

// The intermediate type: f32 for f16 and bf16. A sum or product of two f32 is
// first rounded to long double's 64 digits, and then to f32's 24. Both
// roundings together equal one, because 64 >= 2 * 24 + 2 (S. Figueroa, "When is
// Double Rounding Innocuous?", 1995). This does not hold for f64.
long double FloatReference(ReduceOp op, DType dtype,
                           const std::vector<long double>& operands) {
  const DType between = dtype == DType::kF64 ? dtype : DType::kF32;
  const auto round = [between](long double value) {
    return between == DType::kF64 ? value : Rounded(between, value);
  };
  long double result = operands[0];
  for (size_t k = 1; k < operands.size(); ++k) {
    if (dtype == DType::kF64 && op != ReduceOp::kMin && op != ReduceOp::kMax) {
      const auto a = static_cast<double>(result);
      const auto b = static_cast<double>(operands[k]);
      result = op == ReduceOp::kProduct ? a * b : a + b;
    } else {
      result = round(ApplyToFloats(op, result, operands[k]));
    }
  }
  if (op == ReduceOp::kAverage) {
    const auto number = static_cast<double>(operands.size());
    result = dtype == DType::kF64 ? static_cast<double>(result) / number
                                  : round(result / number);
  }
  return Rounded(dtype, result);
}

// Returns the result modulo 2^64. Truncated to fewer bits, it is exact, too.
uint64_t IntegerReference(ReduceOp op, const std::vector<int64_t>& operands) {
  auto result = static_cast<uint64_t>(operands[0]);
  for (size_t k = 1; k < operands.size(); ++k) {
    const auto next = static_cast<uint64_t>(operands[k]);
    const auto a = static_cast<int64_t>(result);
    switch (op) {
      case ReduceOp::kProduct:
        result *= next;
        break;
      case ReduceOp::kMin:
        result = static_cast<uint64_t>(std::min(a, operands[k]));
        break;
      case ReduceOp::kMax:
        result = static_cast<uint64_t>(std::max(a, operands[k]));
        break;
      case ReduceOp::kAnd:
        result &= next;
        break;
      case ReduceOp::kOr:
        result |= next;
        break;
      case ReduceOp::kXor:
        result ^= next;
        break;
      default:
        result += next;
    }
  }
  return result;
}

uint64_t BitsAt(const uint8_t* data, size_t index, size_t size) {
  uint64_t bits = 0;
  std::memcpy(&bits, data + index * size, size);
  return bits;
}

int64_t IntegerAt(DType dtype, const uint8_t* data, size_t index) {
  const size_t size = tensor::ElementSize(dtype);
  const uint64_t bits = BitsAt(data, index, size);
  if (dtype == DType::kBool) return bits != 0;
  if (dtype == DType::kUint8 || size == 8) return static_cast<int64_t>(bits);
  const int unused = 64 - 8 * static_cast<int>(size);
  return static_cast<int64_t>(bits << unused) >> unused;
}

// Operands of a reduction, at random alignments, and the memory around them.
class Operands {
 public:
  Operands(std::mt19937_64* random, DType dtype, size_t number, size_t count)
      : dtype_(dtype),
        size_(tensor::ElementSize(dtype)),
        random_(random),
        count_(count) {
    for (size_t k = 0; k <= number; ++k) {
      memory_.push_back(RandomBytes(count * size_ + kAround));
      begins_.push_back((*random)() % kAround);
    }
    for (size_t k = 0; k < number; ++k) from_.push_back(At(k));
    if (IsFloat()) TameSomeFloats();
  }

  // Reduces into separate memory, or in place into operand `in_place`. Returns
  // the first difference from the reference, or "".
  std::string Try(ReduceOp op, size_t in_place) {
    const size_t target = in_place < from_.size() ? in_place : from_.size();
    const std::vector<Bytes> before = memory_;
    Reduce(op, dtype_, from_, At(target), count_);
    for (size_t i = 0; i < count_; ++i) {
      const std::string error = Difference(op, before, target, i);
      if (!error.empty()) return error;
    }
    return Untouched(before, target) ? "" : "wrote outside of its range";
  }

 private:
  static constexpr size_t kAround = 80;

  bool IsFloat() const {
    return std::find(std::begin(kFloats), std::end(kFloats), dtype_) !=
           std::end(kFloats);
  }

  uint8_t* At(size_t k) { return memory_[k].data() + begins_[k]; }
  const uint8_t* At(const std::vector<Bytes>& memory, size_t k) const {
    return memory[k].data() + begins_[k];
  }

  Bytes RandomBytes(size_t size) {
    Bytes bytes(size);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>((*random_)());
    return bytes;
  }

  // Gives most elements an exponent near that of 1. Random bits would often be
  // NaN, infinite or of very different magnitudes.
  void TameSomeFloats() {
    const FloatType type = TypeOf(dtype_);
    const uint64_t bias = (uint64_t{1} << (type.exponent_bits - 1)) - 1;
    for (size_t k = 0; k < from_.size(); ++k) {
      for (size_t i = 0; i < count_; ++i) {
        if ((*random_)() % 8 == 0) continue;
        uint64_t bits = BitsAt(At(k), i, size_);
        bits &= ~(((uint64_t{1} << type.exponent_bits) - 1) << type.digits);
        bits |= (bias - 4 + (*random_)() % 8) << type.digits;
        std::memcpy(At(k) + i * size_, &bits, size_);
      }
    }
  }

  std::string Difference(ReduceOp op, const std::vector<Bytes>& before,
                         size_t target, size_t i) {
    const uint64_t bits = BitsAt(At(target), i, size_);
    if (!IsFloat()) {
      std::vector<int64_t> operands;
      for (size_t k = 0; k < from_.size(); ++k) {
        operands.push_back(IntegerAt(dtype_, At(before, k), i));
      }
      const uint64_t mask = ~uint64_t{0} >> (64 - 8 * size_);
      const uint64_t expected = IntegerReference(op, operands) & mask;
      if (bits == expected) return "";
      return absl::StrCat("element ", i, " is ", bits, ", not ", expected);
    }
    std::vector<long double> operands;
    for (size_t k = 0; k < from_.size(); ++k) {
      operands.push_back(Decode(dtype_, BitsAt(At(before, k), i, size_)));
    }
    const long double expected = FloatReference(op, dtype_, operands);
    const long double result = Decode(dtype_, bits);
    if (result == expected || (std::isnan(result) && std::isnan(expected))) {
      return "";
    }
    return absl::StrCat("element ", i, " is ", static_cast<double>(result),
                        ", not ", static_cast<double>(expected));
  }

  bool Untouched(const std::vector<Bytes>& before, size_t target) {
    std::vector<Bytes> restored = memory_;
    std::copy_n(At(before, target), count_ * size_,
                restored[target].data() + begins_[target]);
    return restored == before;
  }

  const DType dtype_;
  const size_t size_;
  std::mt19937_64* const random_;
  const size_t count_;
  std::vector<Bytes> memory_;   // the operands', and that of a result
  std::vector<size_t> begins_;  // in memory_
  std::vector<const void*> from_;
};

void TryAll(DType dtype, std::mt19937_64* random) {
  for (const ReduceOp op : kOps) {
    if (!CheckReduction(op, dtype).ok()) continue;
    // Tries counts beyond four vectors of 64 one-byte elements, with every
    // remainder.
    for (size_t count = 0; count < 270; count += count < 70 ? 1 : 13) {
      const size_t number = 1 + (*random)() % 5;
      const size_t in_place = (*random)() % (2 * number);
      ASSERT_EQ(Operands(random, dtype, number, count).Try(op, in_place), "")
          << Name(op) << " of " << number << " times " << count << " "
          << tensor::Name(dtype) << ", in place of " << in_place;
    }
  }
}

TEST(Reduction, OfFloatsIsThatOfPlainLoops) {
  std::mt19937_64 random(NewSeed());
  OnEachTarget([&](int64_t target) {
    SCOPED_TRACE(target);
    for (const DType dtype : kFloats) TryAll(dtype, &random);
  });
}

TEST(Reduction, OfIntegersIsThatOfPlainLoops) {
  std::mt19937_64 random(NewSeed());
  OnEachTarget([&](int64_t target) {
    SCOPED_TRACE(target);
    for (const DType dtype : kIntegers) TryAll(dtype, &random);
  });
}

TEST(Reduction, AverageOfF16DoesNotOverflow) {
  const uint16_t most = 0x7BFF;  // 65504
  uint16_t result = 0;
  Reduce(ReduceOp::kAverage, DType::kF16, {&most, &most, &most}, &result, 1);
  EXPECT_EQ(result, most);
}

TEST(Reduction, DivideIsTheLastStepOfAnAverage) {
  std::vector<double> sums = {3, -6, 1, 0.5, 9};
  Divide(DType::kF64, sums.data(), 3, sums.size());
  EXPECT_EQ(sums, (std::vector<double>{1, -2, 1 / 3.0, 0.5 / 3, 3}));
}

TEST(Reduction, NamesTheOperationThatATypeDoesNotHave) {
  EXPECT_EQ(CheckReduction(ReduceOp::kXor, DType::kBF16).message(),
            "no xor of bf16");
  EXPECT_EQ(CheckReduction(ReduceOp::kAverage, DType::kInt32).message(),
            "no average of int32");
  EXPECT_EQ(CheckReduction(ReduceOp::kSum, DType::kBool).message(),
            "no sum of bool");
  EXPECT_TRUE(CheckReduction(ReduceOp::kMax, DType::kBool).ok());
}

}  // namespace
}  // namespace penstock::collectives
