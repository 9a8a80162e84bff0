// What is compared: how a step's variables may get to where they are read.

#ifndef PENSTOCK_BENCH_TENSORS_CONTENDER_H_
#define PENSTOCK_BENCH_TENSORS_CONTENDER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/rpc/cell.h"

namespace penstock::bench {

enum class Way {
  kGenerated,  // one RPC, whose message protobuf's generated code holds
  kCodec,      // one RPC, by the codec of tensor_service
  kCopy,       // memcpy to other memory of the process, where it is read
  kRead,       // read where it lies
};

enum class Memory { kHeap, kPool };

struct Contender {
  absl::string_view name;
  Way way;
  Transport transport;  // of an RPC
  Memory memory;        // where the variables lie
  // Whether it is measured without being asked for.
  bool by_default;
};

// Returns all, in the table's order. The first is what others are compared
// with.
const std::vector<Contender>& AllContenders();

// Returns the contender of that name. The error names those that there are.
absl::StatusOr<Contender> FindContender(absl::string_view name);

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_TENSORS_CONTENDER_H_
