// The plan of one call of the soak test.

#ifndef PENSTOCK_TESTS_SOAK_PLAN_H_
#define PENSTOCK_TESTS_SOAK_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <random>

namespace penstock::soak {

enum class Kind { kUnary, kUpload, kDownload, kChat };
enum class Api { kSync, kAsync, kCallback };
enum class Ending {
  kOk,
  kError,     // the status that the request demands
  kCancel,    // by the client, during the call
  kDeadline,  // after a few milliseconds, for which the client waits
};

// A plan of one call. A unary call has one message in each direction, an upload
// one response, and a download one request. A chat alternates between equal
// numbers of both.
struct Plan {
  Kind kind = Kind::kUnary;
  Api api = Api::kSync;
  Ending ending = Ending::kOk;
  bool metadata = false;
  size_t request_bytes = 0;
  size_t response_bytes = 0;
  int messages = 1;
  uint64_t seed = 0;  // of the bytes
};

// Draws a plan: 60 % are unary, half use async or callback, one in eight fails.
Plan AnyPlan(std::mt19937_64* random);

}  // namespace penstock::soak

#endif  // PENSTOCK_TESTS_SOAK_PLAN_H_
