#include "bench/rpc/message/buffers.h"

#include <algorithm>
#include <random>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace bench {
namespace {

// The sizes of the ten buffers of a kSkew message, as indices into three
// ascending sizes. Large buffers alternate with the others, as in a model.
constexpr size_t kSkewed[] = {2, 1, 2, 2, 0, 2, 1, 2, 2, 1};

// The seed of the random sizes. Arbitrary, and equal in all processes.
constexpr unsigned kSeed = 1;

}  // namespace

const std::vector<Scheme>& AllSchemes() {
  static const auto& all = *new std::vector<Scheme>{
      Scheme::kEqual, Scheme::kUniform, Scheme::kRandom, Scheme::kSkew};
  return all;
}

absl::string_view Name(Scheme scheme) {
  switch (scheme) {
    case Scheme::kEqual:
      return "equal";
    case Scheme::kUniform:
      return "uniform";
    case Scheme::kRandom:
      return "random";
    case Scheme::kSkew:
      return "skew";
  }
  return "?";
}

absl::StatusOr<Scheme> ParseScheme(absl::string_view name) {
  for (Scheme scheme : AllSchemes()) {
    if (Name(scheme) == name) return scheme;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", name, "\" is no scheme; there are equal, uniform, random, skew"));
}

BufferSizes MixedBuffers(const Buffers& buffers, std::vector<size_t> sizes) {
  std::sort(sizes.begin(), sizes.end());
  // Draw with `%`, because std::uniform_int_distribution may differ between
  // libraries.
  std::mt19937 random(kSeed);
  BufferSizes parts;
  for (int i = 0; i < buffers.count; ++i) {
    size_t chosen = i % sizes.size();
    if (buffers.scheme == Scheme::kRandom) chosen = random() % sizes.size();
    if (buffers.scheme == Scheme::kSkew) {
      chosen = kSkewed[i % (sizeof(kSkewed) / sizeof(kSkewed[0]))];
    }
    parts.push_back(sizes[chosen]);
  }
  return parts;
}

std::string Buffers::ToString() const {
  if (is_one()) return "";
  return absl::StrCat(count, " buffers, ", Name(scheme));
}

BufferSizes EqualBuffers(int count, size_t bytes) {
  const auto parts = static_cast<size_t>(count);
  BufferSizes sizes;
  for (size_t i = 0; i < parts; ++i) {
    const size_t size = bytes / parts + (i < bytes % parts ? 1 : 0);
    if (size > 0) sizes.push_back(size);
  }
  return sizes;
}

}  // namespace bench
}  // namespace penstock
