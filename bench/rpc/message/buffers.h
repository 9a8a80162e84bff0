// The number and sizes of a message's buffers.
//
// The schemes uniform, random and skew are those of TF-gRPC-Bench (Biswas, Lu
// and Panda, "Designing a Micro-Benchmark Suite to Evaluate gRPC for
// TensorFlow", 2018).

#ifndef PENSTOCK_BENCH_RPC_MESSAGE_BUFFERS_H_
#define PENSTOCK_BENCH_RPC_MESSAGE_BUFFERS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace penstock {
namespace bench {

enum class Scheme {
  kEqual,    // a message per size, in buffers of equal size
  kUniform,  // buffers of all sizes in turn
  kRandom,   // each buffer has a randomly chosen size
  kSkew,  // 60 % of the buffers of the largest size, 30 % of the middle, 10 %
          // of the smallest
};

const std::vector<Scheme>& AllSchemes();
absl::string_view Name(Scheme scheme);
// Parses the name of a scheme. The error lists all names.
absl::StatusOr<Scheme> ParseScheme(absl::string_view name);

struct Buffers {
  Scheme scheme = Scheme::kEqual;
  int count = 1;

  bool is_one() const { return scheme == Scheme::kEqual && count == 1; }
  // Returns a description such as "10 buffers, skew", or "" for one buffer.
  std::string ToString() const;
};

// The sizes of a message's buffers. Does not allocate for one buffer.
using BufferSizes = absl::InlinedVector<size_t, 1>;

// A function that writes one buffer, which begins at byte `offset` of the
// message.
using WritePart =
    absl::FunctionRef<void(absl::Span<uint8_t> part, size_t offset)>;

// Returns the sizes of a message's buffers, mixed from `sizes` as `scheme`
// says. `scheme` is not kEqual; kSkew needs three sizes. Every process gets the
// same result for the same arguments.
BufferSizes MixedBuffers(const Buffers& buffers, std::vector<size_t> sizes);

// Returns the sizes of `count` buffers that divide `bytes` bytes. Returns fewer
// buffers if `bytes` is below `count`.
BufferSizes EqualBuffers(int count, size_t bytes);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_MESSAGE_BUFFERS_H_
