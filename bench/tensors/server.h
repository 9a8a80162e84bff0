// The server of a contender, in a process of its own.

#ifndef PENSTOCK_BENCH_TENSORS_SERVER_H_
#define PENSTOCK_BENCH_TENSORS_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/rpc/child_process.h"
#include "bench/tensors/contender.h"

namespace penstock::bench {

struct StepServer {
  std::string address;  // what a client passes to CreateChannel
  std::unique_ptr<ChildProcess> process;
};

// Starts this program as the server, and returns when it serves. Returns
// UNAVAILABLE, with the reason, if it cannot serve over the transport.
// `host` is the name or the number of an address of this machine.
absl::StatusOr<StepServer> StartServer(const Contender& contender,
                                       const std::string& host);

// The flags by which main() knows that it is to call RunServer(), and with
// what. A value follows, after '='.
inline constexpr char kServerFlag[] = "--server";
inline constexpr char kHostFlag[] = "--host";

// Where the server takes what the codec has made.
inline constexpr char kCodecPath[] = "/penstock.bench.v1.Step/Codec";

// Serves until the parent is done with this process.
[[noreturn]] void RunServer(const Contender& contender,
                            const std::string& host);

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_TENSORS_SERVER_H_
