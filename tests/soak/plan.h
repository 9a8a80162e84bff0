// What one call of the soak test should do.

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
  kError,     // a status that the server is told to return
  kCancel,    // by the client, during the call
  kDeadline,  // after a few milliseconds; the client waits for it
};

// A unary call has one message each way, an upload one response, a download one
// request. A chat has as many of both, by turns.
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

// Six in ten are unary, half are async or callback, one in eight ends badly.
Plan AnyPlan(std::mt19937_64* random);

}  // namespace penstock::soak

#endif  // PENSTOCK_TESTS_SOAK_PLAN_H_
