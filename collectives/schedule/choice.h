// Chooses the algorithm of an operation by size, ranks and topology.

#ifndef PENSTOCK_COLLECTIVES_SCHEDULE_CHOICE_H_
#define PENSTOCK_COLLECTIVES_SCHEDULE_CHOICE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "collectives/schedule/plan.h"

namespace penstock::collectives {

// The model of a link: a message of b bytes takes step_us + b * byte_us.
struct LinkCosts {
  double step_us;
  double byte_us;
};

// These costs are assumptions instead of measurements, because all ranks must
// use the same numbers, and measurements would change the order of sums from
// run to run.
//  - Shared memory: one store that a waiting core sees, and a copy.
inline constexpr LinkCosts kSharedMemory = {0.5, 1 / 8e3};
// - RDMA: a small READ, and 100 Gb/s.
inline constexpr LinkCosts kVerbs = {3, 1 / 12e3};
// - TCP: half of a round trip with polling threads, and 10 Gb/s.
inline constexpr LinkCosts kTcp = {15, 1 / 1.2e3};

// The time to reduce a byte of a message, with two operands and a result in a
// core's caches. Assumed to be equal for all types.
inline constexpr double kReduceByteUs = 1 / 8e3;

// The algorithms that a setting forces, for each operation.
using Overrides = std::map<Operation, Algorithm>;

// Parses a text such as "all_reduce=ring,broadcast=binomial-tree". The names
// are those of Name(), with '-' for a space. Returns INVALID_ARGUMENT, with the
// accepted names, for an unknown or repeated operation, and for an algorithm
// that the operation does not have. An empty text has no overrides.
absl::StatusOr<Overrides> ParseOverrides(absl::string_view text);

struct Question {
  Operation operation = Operation::kAllReduce;
  int root = 0;
  int64_t count = 0;
  int64_t element_size = 1;
  // The host of each rank, by any numbering.
  std::vector<int> hosts = {0};
  LinkCosts inside_host = kSharedMemory;
  LinkCosts between_hosts = kTcp;
  double reduce_byte_us = kReduceByteUs;
};

struct Estimate {
  Plan plan;
  double microseconds = 0;
};

struct Choice {
  Estimate chosen;
  bool forced = false;           // by an override
  std::vector<Estimate> others;  // ordered by time
};

// Returns the algorithm with the shortest estimate, or the forced algorithm.
// Equal arguments give equal results, so all ranks of a group make the same
// choice without a message. Returns INVALID_ARGUMENT if CheckPlan() does.
absl::StatusOr<Choice> Choose(const Question& question,
                              const Overrides& overrides);

// Returns one line: "all_reduce of 4194304 elements on 8 ranks: ring, about
// 2205 us (halving-doubling 2199 us, ...)".
std::string Describe(const Choice& choice);

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_SCHEDULE_CHOICE_H_
