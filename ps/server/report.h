// The report of one server.

#ifndef PENSTOCK_PS_SERVER_REPORT_H_
#define PENSTOCK_PS_SERVER_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace penstock::ps {

struct PushCounts {
  uint64_t counted = 0;
  uint64_t not_counted = 0;  // late or repeated
  uint64_t refused = 0;      // not finite, wrong shape, not a member, ...
};

struct TableReport {
  std::string name;
  bool is_sparse = false;
  bool is_new = false;  // absent from the restored checkpoint
  uint64_t steps = 0;
  uint64_t bytes = 0;         // on this server
  uint64_t rows = 0;          // on this server
  uint64_t spilled_rows = 0;  // the part of `rows` that is on disk
  // The fields below are set for sparse tables only. Counters start at 0 when
  // the server starts.
  uint64_t budget_bytes = 0;
  uint64_t hits = 0;    // pulled or pushed ids that had a row
  uint64_t misses = 0;  // pulled or pushed ids that had no row
  uint64_t evicted_rows = 0;
  uint64_t not_admitted = 0;
  uint64_t refused_pushes = 0;
  // The number of gradients that were lost after their push was acknowledged.
  uint64_t dropped_gradients = 0;
};

struct WorkerReport {
  uint32_t rank = 0;
  uint64_t clock = 0;
  bool is_member = false;
  uint64_t behind = 0;  // steps behind the worker with the highest clock
  uint64_t pushed = 0;  // the clock after its last push, or as restored
};

struct ServerReport {
  uint64_t run = 0;  // 0: no model; the other fields mean nothing
  uint64_t epoch = 0;
  uint32_t server = 0;
  uint32_t servers = 0;
  bool has_values = false;
  uint64_t version = 0;  // the version of the synchronous tables
  uint32_t live_workers = 0;
  uint32_t expected_workers = 0;
  uint64_t workers_lost = 0;
  PushCounts pushes;
  uint64_t held_bytes = 0;  // the bytes of pushes that are not applied
  uint64_t held_bytes_limit = 0;
  uint64_t restored_step = 0;
  // The fields below are about checkpoints. Server leaves them unset; the owner
  // of the CheckpointWriter sets them. Only server 0 has the results of
  // checkpoints.
  uint64_t last_checkpoint_step = 0;  // last commit of this process; 0: none
  absl::Duration last_checkpoint_age;
  // The number of checkpoints in the folder, after the last commit or when this
  // process opened the folder.
  uint64_t checkpoints = 0;
  uint64_t checkpoints_bytes = 0;
  uint64_t aside_checkpoints = 0;  // set aside by a restore
  uint64_t aside_checkpoints_bytes = 0;
  uint64_t checkpoint_failures = 0;
  uint64_t checkpoint_failures_since = 0;  // the last good one
  std::string checkpoint_failure;  // the last one's reason; empty: it is good
  // The bytes of the current shard that are written, and their total. The total
  // is 0 while no shard is being written.
  uint64_t checkpoint_written_bytes = 0;
  uint64_t checkpoint_total_bytes = 0;
  std::string failure;              // why training has ended; empty: it has not
  std::vector<TableReport> tables;  // in the order of the model
  std::vector<WorkerReport> workers;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_REPORT_H_
