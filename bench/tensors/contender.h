// The contenders: ways in which a step's variables reach their reader.

#ifndef PENSTOCK_BENCH_TENSORS_CONTENDER_H_
#define PENSTOCK_BENCH_TENSORS_CONTENDER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/rpc/message/cell.h"

namespace penstock::bench {

enum class Way {
  kGenerated,  // one RPC, with protobuf's generated code
  kCodec,      // one RPC, with the codec of tensor_service
  kCopy,       // memcpy to other memory of the process, read there
  kRead,       // read in place
};

enum class Memory { kHeap, kPool, kDevice };

struct Contender {
  absl::string_view name;
  Way way;
  Transport transport;  // for an RPC
  Memory memory;        // location of the variables
  // True if the contender is measured by default, among those with or without
  // devices.
  bool by_default;
  // The memory that receives the variables. Only kDevice makes a difference:
  // all other values mean memory of the host.
  Memory to = Memory::kHeap;
  // True if the sender itself copies from the device to the host.
  bool staged = false;
};

// Returns true if a device of the machine is involved.
bool UsesDevice(const Contender& contender);

// Returns all contenders, in the table's order. The table compares the others
// with the first contender.
const std::vector<Contender>& AllContenders();

// Returns the contender with this name. The error lists all names.
absl::StatusOr<Contender> FindContender(absl::string_view name);

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_TENSORS_CONTENDER_H_
