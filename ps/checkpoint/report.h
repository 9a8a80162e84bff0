// The output of the commands that inspect checkpoints.

#ifndef PENSTOCK_PS_CHECKPOINT_REPORT_H_
#define PENSTOCK_PS_CHECKPOINT_REPORT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "ps/checkpoint/files.h"
#include "ps/checkpoint/verify.h"

namespace penstock::ps::checkpoint {

enum class Form { kText, kJson };

struct Report {
  // The text for people. Ends with a newline. Unprintable names are escaped.
  std::string text;
  // True if no damage was found.
  bool is_good = true;
};

// Lists the checkpoints, the newest first, or describes the tables, shards and
// clocks of the checkpoint of `step`. Reads only manifests and the ends of
// shards.
absl::StatusOr<Report> Inspect(Files* files, absl::optional<uint64_t> step,
                               Form form);

// Reads every byte of the checkpoint of `step`, or of the newest checkpoint,
// and of its bases. Reports each damaged block.
absl::StatusOr<Report> VerifyAndReport(Files* files,
                                       absl::optional<uint64_t> step, Form form,
                                       const Progress& progress = nullptr);

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_REPORT_H_
