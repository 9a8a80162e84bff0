// What the commands that look at checkpoints print.

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
  // Ends with a newline. Names are printable, whatever users chose.
  std::string text;
  // Whether all that was looked at is good.
  bool is_good = true;
};

// Lists the checkpoints, the newest first, by their manifests and the ends of
// their shards; or tells what is in the one of `step`: tables, shards, clocks.
absl::StatusOr<Report> Inspect(Files* files, absl::optional<uint64_t> step,
                               Form form);

// Reads every byte of the checkpoint of `step`, or of the newest, with those
// that it stands on, and tells each damaged block.
absl::StatusOr<Report> VerifyAndReport(Files* files,
                                       absl::optional<uint64_t> step, Form form,
                                       const Progress& progress = nullptr);

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_REPORT_H_
