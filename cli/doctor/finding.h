// What a probe of `penstock doctor` has found.

#ifndef PENSTOCK_CLI_DOCTOR_FINDING_H_
#define PENSTOCK_CLI_DOCTOR_FINDING_H_

#include <string>
#include <vector>

namespace penstock::cli {

enum class Level {
  kOk,
  kNote,     // works, but is slower or reaches less than it could
  kProblem,  // does not do what is asked of it
};

struct Finding {
  std::string group;    // the heading that it stands under: "RDMA"
  std::string subject;  // what was looked at: "rxe0/1"
  Level level = Level::kOk;
  std::string text;
  std::string remedy;  // what to do, or empty
};

using Findings = std::vector<Finding>;

// Returns "ok", "note" or "problem".
const char* LevelName(Level level);

// Whether a fabric can carry a connection of a process that is started here.
struct PathVerdict {
  std::string fabric;  // "shm"
  bool usable = false;
  std::string text;  // to whom, or why not
};

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_DOCTOR_FINDING_H_
