// Computes initial values. Compiled with -ffp-contract=off: a fused
// multiplication and addition would round once instead of twice, and not every
// machine has one.

#include "ps/sparse/initial_value.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace penstock::ps::sparse {
namespace {

// Returns ln(x) of a positive normal number: x = m * 2^e with m around 1, and
// ln(m) = 2 * artanh((m - 1) / (m + 1)). The first omitted term is below 1e-15.
double Log(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  bits = (bits & 0xfffffffffffff) | 0x3ff0000000000000;
  double m;
  std::memcpy(&m, &bits, sizeof m);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1) / (m + 1);
  double sum = 0;
  for (int k = 17; k >= 1; k -= 2) sum = sum * (s * s) + 1.0 / k;
  return exponent * 0.6931471805599453 + 2 * s * sum;
}

// Returns sine and cosine of an angle up to a quarter of pi, by Taylor's
// series.
struct SineCosine {
  double sine;
  double cosine;
};
SineCosine OfSmall(double x) {
  const double square = x * x;
  double sine = 1;
  double cosine = 1;
  for (int k = 14; k >= 2; k -= 2) {
    sine = 1 - sine * square / (k * (k + 1));
    cosine = 1 - cosine * square / (k * (k - 1));
  }
  return {x * sine, cosine};
}

// Returns sine and cosine of an angle of word / 2^32 turns. Computes them for
// the distance to the nearest quarter turn, then rotates by quarters.
SineCosine OfTurn(uint32_t word) {
  const uint32_t quarter = (word + 0x20000000u) >> 30;
  const auto rest = static_cast<int32_t>(word - (quarter << 30));
  const SineCosine small = OfSmall(rest * (6.283185307179586 / 4294967296.0));
  switch (quarter & 3) {
    case 0:
      return small;
    case 1:
      return {small.cosine, -small.sine};
    case 2:
      return {-small.sine, -small.cosine};
    default:
      return {-small.cosine, small.sine};
  }
}

}  // namespace

InitialValue::InitialValue(const Initial& initial, uint64_t seed,
                           absl::string_view table)
    : initial_(initial),
      below_high_(std::nextafter(initial.high,
                                 -std::numeric_limits<float>::infinity())),
      key_(KeyOf(seed, table)) {}

void InitialValue::Transform(const std::array<uint32_t, 4>& words,
                             std::array<float, 4>* values) const {
  if (initial_.kind == Initial::Kind::kUniform) {
    const double range = double{initial_.high} - initial_.low;
    for (int i = 0; i < 4; ++i) {
      const double u = (words[i] >> 8) * (1.0 / 16777216);
      const auto value = static_cast<float>(initial_.low + range * u);
      (*values)[i] = std::min(value, below_high_);
    }
    return;
  }
  for (int i = 0; i < 4; i += 2) {
    // Makes u uniform and above 0, so that its logarithm exists.
    const double u = ((words[i] >> 8) + 1.0) * (1.0 / 16777216);
    const double radius = initial_.stddev * std::sqrt(-2 * Log(u));
    const SineCosine turn = OfTurn(words[i + 1]);
    (*values)[i] = static_cast<float>(initial_.mean + radius * turn.cosine);
    (*values)[i + 1] = static_cast<float>(initial_.mean + radius * turn.sine);
  }
}

void InitialValue::Fill(uint64_t id, size_t dim, float* value) const {
  if (initial_.kind == Initial::Kind::kZeros) {
    std::fill_n(value, dim, 0.0f);
    return;
  }
  const auto low = static_cast<uint32_t>(id);
  const auto high = static_cast<uint32_t>(id >> 32);
  std::array<float, 4> four;
  for (size_t i = 0; i < dim; i += 4) {
    Transform(Philox({low, high, static_cast<uint32_t>(i / 4), 0}, key_),
              &four);
    std::copy_n(four.begin(), std::min<size_t>(4, dim - i), value + i);
  }
}

}  // namespace penstock::ps::sparse
