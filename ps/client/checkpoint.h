// Has the servers of a training write a checkpoint.

#ifndef PENSTOCK_PS_CLIENT_CHECKPOINT_H_
#define PENSTOCK_PS_CLIENT_CHECKPOINT_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "ps/client/connection.h"
#include "ps/wire/ps.pb.h"

namespace penstock::ps {

struct CheckpointOptions {
  // Writes what has changed since the newest one, if that can be the base.
  bool incremental = false;
  // Removes all but the newest so many; 0: none.
  uint64_t keep = 0;
  absl::Duration timeout = absl::Minutes(10);  // of all of it
  // Called in between with a line for people; may be empty.
  std::function<void(absl::string_view)> progress;
  // Called now and then while the servers write, on another thread, with the
  // bytes that all of them have written and will have; those may get less, as
  // ps.proto says. May be empty: then nobody is asked.
  std::function<void(uint64_t done, uint64_t total)> written;
};

struct CheckpointResult {
  uint64_t step = 0;  // its name
  bool is_incremental = false;
  uint64_t bytes = 0;  // of all servers
  std::vector<uint64_t> removed_steps;
};

// Writes a checkpoint at all servers, side by side. Each push is in it wholly
// or not at all, at all tables and servers: all servers hold their steps while
// the cut is chosen, and go on to it. Blocks; training goes on meanwhile. If a
// server ends its hold before it is told the cut, begins again, up to five
// times. So it does, with a full one, if a server cannot go on from the base.
//
// Any process may call it, one at a time: another call gives this one up.
// Returns OUT_OF_RANGE if the servers were ahead each time, DEADLINE_EXCEEDED
// after the timeout, and what the servers return. There is no checkpoint then,
// and the next attempt removes what is left over.
absl::StatusOr<CheckpointResult> TakeCheckpoint(
    const Connection& connection, const CheckpointOptions& options);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_CHECKPOINT_H_
