// The findings of the probes of `penstock doctor`.

#ifndef PENSTOCK_CLI_DOCTOR_FINDING_H_
#define PENSTOCK_CLI_DOCTOR_FINDING_H_

#include <string>
#include <vector>

namespace penstock::cli {

enum class Level {
  kOk,
  kNote,     // works, but is slower or reaches fewer peers than possible
  kProblem,  // does not work as requested
};

struct Finding {
  std::string group;    // the heading of the finding: "RDMA"
  std::string subject;  // the examined object: "rxe0/1"
  Level level = Level::kOk;
  std::string text;
  std::string remedy;  // the action to take, or empty
};

using Findings = std::vector<Finding>;

// Returns "ok", "note" or "problem".
const char* LevelName(Level level);

// The verdict on a fabric: true if connections of a process on this machine can
// use it.
struct PathVerdict {
  std::string fabric;  // "shm"
  bool usable = false;
  std::string text;  // the reachable peers, or the reason
};

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_DOCTOR_FINDING_H_
