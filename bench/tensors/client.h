// The client of a contender, in a process of its own: gRPC and Penstock keep
// process-wide state, which the next contender is not to find.

#ifndef PENSTOCK_BENCH_TENSORS_CLIENT_H_
#define PENSTOCK_BENCH_TENSORS_CLIENT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/tensors/contender.h"
#include "bench/tensors/models.h"
#include "bench/tensors/report.h"

namespace penstock::bench {

struct ClientOptions {
  std::string host;        // that the server listens at
  absl::Duration measure;  // how long to go on after the first steps
  int steps = 0;           // or how many steps to measure, if not 0
};

// Starts this program as the client of one round, and waits for its result.
// Returns UNAVAILABLE, with the reason, if the transport is not available here.
absl::StatusOr<Step> MeasureInChild(const Contender& contender,
                                    const Model& model,
                                    const ClientOptions& options);

// The flags by which main() knows that it is to call RunClient(), and with
// what. A value follows, after '='. kHostFlag is the server's.
inline constexpr char kClientFlag[] = "--client";
inline constexpr char kModelFlag[] = "--model";
inline constexpr char kSecondsFlag[] = "--seconds";
inline constexpr char kStepsFlag[] = "--steps";

// Measures, sends the result to the parent, and ends the process.
[[noreturn]] void RunClient(const Contender& contender, const Model& model,
                            const ClientOptions& options);

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_TENSORS_CLIENT_H_
