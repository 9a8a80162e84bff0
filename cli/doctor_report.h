// How findings are shown: to people and to programs.

#ifndef PENSTOCK_CLI_DOCTOR_REPORT_H_
#define PENSTOCK_CLI_DOCTOR_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/doctor/finding.h"
#include "cli/text/output.h"

namespace penstock::cli {

// What came of the connection to a target.
struct TargetReport {
  std::string target;
  std::string path;           // "shm"; empty: nothing came back
  std::string detail;         // "ring 256 KiB", or what went wrong
  std::string reason;         // why no better path is used
  std::string calls;          // what was called
  absl::Duration round_trip;  // of a call without payload, the median
};

struct DoctorReport {
  std::vector<PathVerdict> paths;
  std::optional<TargetReport> target;
  Findings findings;

  int Count(Level level) const;
  // A target that does not answer is one.
  int Problems() const;
};

// Returns text for `out`. `brief` leaves out what is ok.
std::string ReportText(const DoctorReport& report, const Output& out,
                       bool brief);
// Returns one JSON object, in one line.
std::string ReportJson(const DoctorReport& report);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_DOCTOR_REPORT_H_
