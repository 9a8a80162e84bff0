// The server of a contender, in its own process.

#ifndef PENSTOCK_BENCH_TENSORS_SERVER_H_
#define PENSTOCK_BENCH_TENSORS_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/rpc/setup/child_process.h"
#include "bench/tensors/contender.h"

namespace penstock::bench {

struct StepServer {
  std::string address;  // for CreateChannel
  std::unique_ptr<ChildProcess> process;
};

// Starts this program as the server, and returns once it serves. `host` is a
// name or an address of this machine. Returns UNAVAILABLE, with the reason, if
// it cannot serve over the transport.
absl::StatusOr<StepServer> StartServer(const Contender& contender,
                                       const std::string& host);

// The flags of a server process: main() then calls RunServer(). Each has a
// value after '='.
inline constexpr char kServerFlag[] = "--server";
inline constexpr char kHostFlag[] = "--host";

// The method that receives messages of the tensor service's codec.
inline constexpr char kCodecPath[] = "/penstock.bench.v1.Step/Codec";

// Serves until the parent has finished with this process.
[[noreturn]] void RunServer(const Contender& contender,
                            const std::string& host);

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_TENSORS_SERVER_H_
