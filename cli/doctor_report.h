// Formats findings as text or JSON.

#ifndef PENSTOCK_CLI_DOCTOR_REPORT_H_
#define PENSTOCK_CLI_DOCTOR_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/doctor/finding.h"
#include "cli/text/output.h"

namespace penstock::cli {

// The result of the connection to a target.
struct TargetReport {
  std::string target;
  std::string path;           // "shm"; empty if there was no answer
  std::string detail;         // "ring 256 KiB", or the error
  std::string reason;         // the reason for not using a better path
  std::string calls;          // the called method
  absl::Duration round_trip;  // median of calls without payload
};

struct DoctorReport {
  std::vector<PathVerdict> paths;
  std::optional<TargetReport> target;
  Findings findings;

  int Count(Level level) const;
  // Returns the number of problems. A target that does not answer counts as one
  // problem.
  int Problems() const;
};

// Returns text for `out`. `brief` omits findings of level kOk.
std::string ReportText(const DoctorReport& report, const Output& out,
                       bool brief);
// Returns one JSON object on one line.
std::string ReportJson(const DoctorReport& report);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_DOCTOR_REPORT_H_
