// The files to which a run writes its results, in addition to the table.

#ifndef PENSTOCK_BENCH_RPC_REPORT_RESULT_FILES_H_
#define PENSTOCK_BENCH_RPC_REPORT_RESULT_FILES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/rpc/report/report.h"
#include "bench/rpc/report/result_file.h"
#include "bench/rpc/setup/options.h"

namespace penstock {
namespace bench {

class ResultFiles {
 public:
  // Opens all files that `options` name. Call it before the measurement; see
  // result_file.h.
  static absl::StatusOr<ResultFiles> Open(const RunOptions& options);

  // Writes the results of `cells` to the files, and closes them. Call it once.
  // `command` is for the page.
  absl::Status Write(const std::vector<CellSummary>& cells,
                     absl::string_view command);

 private:
  // Each file is null if the options do not name it.
  std::unique_ptr<ResultFile> json_;
  std::unique_ptr<ResultFile> csv_;
  std::unique_ptr<ResultFile> html_;
};

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_REPORT_RESULT_FILES_H_
