// Of how many buffers a message consists, and how large they are.
//
// The schemes uniform, random and skew are those of TF-gRPC-Bench (Biswas, Lu
// and Panda, "Designing a Micro-Benchmark Suite to Evaluate gRPC for
// TensorFlow", 2018).

#ifndef PENSTOCK_BENCH_RPC_BUFFERS_H_
#define PENSTOCK_BENCH_RPC_BUFFERS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock {
namespace bench {

enum class Scheme {
  kEqual,    // a message of each size, in buffers of equal size
  kUniform,  // of all sizes the same number of buffers, by turns
  kRandom,   // each buffer of a size chosen at random
  kSkew,  // 60 % of the buffers of the largest size, 30 % of the middle, 10 %
          // of the smallest
};

const std::vector<Scheme>& AllSchemes();
absl::string_view Name(Scheme scheme);
// Parses what Name() returns. The error is a sentence with all names.
absl::StatusOr<Scheme> ParseScheme(absl::string_view name);

struct Buffers {
  Scheme scheme = Scheme::kEqual;
  int count = 1;

  bool is_one() const { return scheme == Scheme::kEqual && count == 1; }
  // Returns, for example, "10 buffers, skew"; of one buffer "".
  std::string ToString() const;
};

// The size of each buffer of a message. Of one, without an allocation.
using BufferSizes = absl::InlinedVector<size_t, 1>;

// Returns the sizes of the buffers of one message that `scheme`, which is not
// kEqual, makes of `sizes`. The same for the same arguments, in each process.
// kSkew needs three sizes.
BufferSizes MixedBuffers(const Buffers& buffers, std::vector<size_t> sizes);

// Returns the sizes of `count` buffers that `bytes` bytes are divided into: of
// less than `count` bytes, fewer.
BufferSizes EqualBuffers(int count, size_t bytes);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_BUFFERS_H_
