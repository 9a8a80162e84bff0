// The files that a run writes in addition to its table.

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
  // Opens all files that `options` name, before the measurement; see
  // result_file.h.
  static absl::StatusOr<ResultFiles> Open(const RunOptions& options);

  // Writes and closes the files. Call it once. `command` is for the page.
  absl::Status Write(const std::vector<CellSummary>& cells,
                     absl::string_view command);

 private:
  // Null if not requested.
  std::unique_ptr<ResultFile> json_;
  std::unique_ptr<ResultFile> csv_;
  std::unique_ptr<ResultFile> html_;
};

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_REPORT_RESULT_FILES_H_
