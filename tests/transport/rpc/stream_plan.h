// Random plans of streams.

#ifndef PENSTOCK_TESTS_TRANSPORT_RPC_STREAM_PLAN_H_
#define PENSTOCK_TESTS_TRANSPORT_RPC_STREAM_PLAN_H_

#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace penstock {
namespace rpc {

using Random = std::mt19937;

// Returns a number below 2^bits, each magnitude with the same probability.
inline size_t LogUniform(Random* random, unsigned bits) {
  return (*random)() % (size_t{1} << ((*random)() % (bits + 1)));
}

// The plan of one stream.
struct Plan {
  struct Write {
    size_t size;
    bool waits;  // for the report, before the next step
  };
  struct ServerStep {
    bool reads;  // false: writes
    Write write;
  };
  enum class Ending { kFinish, kLetGo };
  enum class Cut { kNone, kCancel, kDestroy, kDeadline };

  explicit Plan(unsigned the_seed) : seed(the_seed) {
    Random random(seed);
    for (size_t i = LogUniform(&random, 5); i > 0; --i) {
      client.push_back(MakeWrite(&random));
    }
    marks_last = random() % 2 == 0;
    has_metadata = random() % 2 == 0;
    for (size_t i = LogUniform(&random, 6); i > 0; --i) {
      server.push_back({random() % 2 == 0, MakeWrite(&random)});
    }
    if (random() % 8 == 0) ending = Ending::kLetGo;
    code =
        random() % 2 == 0 ? absl::StatusCode::kOk : absl::StatusCode::kAborted;
    trailing = std::string(LogUniform(&random, 14), 't');
    if (random() % 4 == 0) {
      cut = static_cast<Cut>(1 + random() % 3);
      cut_after = random() % (client.size() + 1);
      timeout = absl::Microseconds(LogUniform(&random, 14));
    }
  }
  static Write MakeWrite(Random* random) {
    const size_t size = LogUniform(random, 20);
    return {size, (*random)() % 2 == 0};
  }
  std::string Text(char side, size_t index, size_t size) const {
    std::string text(size, static_cast<char>(side + index + seed));
    if (size >= 8) text.replace(0, 4, "head").replace(size - 4, 4, "tail");
    return text;
  }

  const unsigned seed;
  std::vector<Write> client;
  bool marks_last;  // instead of a half-close
  bool has_metadata;
  std::vector<ServerStep> server;
  Ending ending = Ending::kFinish;
  absl::StatusCode code;
  std::string trailing;
  Cut cut = Cut::kNone;
  size_t cut_after = 0;  // of the client's messages
  absl::Duration timeout;
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_RPC_STREAM_PLAN_H_
