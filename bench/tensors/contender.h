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

enum class Memory { kHeap, kPool, kDevice };

struct Contender {
  absl::string_view name;
  Way way;
  Transport transport;  // of an RPC
  Memory memory;        // where the variables lie
  // Whether it is measured without being asked for, of those with devices or
  // without.
  bool by_default;
  // Where they are wanted: kDevice; of kCopy kPool; otherwise as they come.
  Memory to = Memory::kHeap;
  // Whether the sender copies from the device to the host by itself.
  bool staged = false;
};

// Whether a device of the machine takes part.
bool UsesDevice(const Contender& contender);

// Returns all, in the table's order. The first is what others are compared
// with.
const std::vector<Contender>& AllContenders();

// Returns the contender of that name. The error names those that there are.
absl::StatusOr<Contender> FindContender(absl::string_view name);

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_TENSORS_CONTENDER_H_
