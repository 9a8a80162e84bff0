// The client of a contender, in its own process: gRPC and Penstock keep
// process-wide state, which must not affect the next contender.

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
  std::string host;  // the server's address
  // The duration of the measurement, after the first steps.
  absl::Duration measure;
  int steps = 0;  // the number of measured steps instead, if not 0
};

// Starts this program as the client of one round, and waits for the result.
// Returns UNAVAILABLE, with the reason, if the transport is not available here.
absl::StatusOr<Step> MeasureInChild(const Contender& contender,
                                    const Model& model,
                                    const ClientOptions& options);

// The flags of a client process: main() then calls RunClient(). Each has a
// value after '='. kHostFlag is the server's host.
inline constexpr char kClientFlag[] = "--client";
inline constexpr char kModelFlag[] = "--model";
inline constexpr char kSecondsFlag[] = "--seconds";
inline constexpr char kStepsFlag[] = "--steps";

// Measures a contender's steps, sends the result to the parent, and ends the
// process.
[[noreturn]] void RunClient(const Contender& contender, const Model& model,
                            const ClientOptions& options);

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_TENSORS_CLIENT_H_
