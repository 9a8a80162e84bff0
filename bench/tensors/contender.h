// The contenders: ways in which a step's variables get to their reader.

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
  // True if the contender is measured by default. --memory selects the
  // contenders with a device or those without.
  bool by_default;
  // The memory that receives the variables. All values except kDevice mean
  // memory of the host.
  Memory to = Memory::kHeap;
  // True if the sender copies the variables from the device to the host before
  // the call.
  bool staged = false;
};

// Returns true if the contender sends from or receives into a device.
bool UsesDevice(const Contender& contender);

// Returns all contenders, in the table's order. The table compares the others
// with the first contender.
const std::vector<Contender>& AllContenders();

// Returns the contender with this name. The error lists all names.
absl::StatusOr<Contender> FindContender(absl::string_view name);

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_TENSORS_CONTENDER_H_
