#include "bench/rpc/report/result_files.h"

#include <utility>

#include "absl/status/status.h"
#include "bench/rpc/report/page.h"

namespace penstock {
namespace bench {
namespace {

// Limit the bytes of one cell in any file, and the bytes of an HTML page
// without cells.
constexpr size_t kBytesPerCell = 700;
constexpr size_t kPageBytes = size_t{256} << 10;

absl::Status OpenOne(const std::string& path, size_t reserve,
                     std::unique_ptr<ResultFile>* file) {
  if (path.empty()) return absl::OkStatus();
  auto opened = ResultFile::Open(path, reserve);
  if (!opened.ok()) return opened.status();
  *file = *std::move(opened);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ResultFiles> ResultFiles::Open(const RunOptions& options) {
  const size_t cells = options.benchmarks.size() * options.apis.size() *
                       options.sizes.size() * options.transports.size();
  const size_t reserve = cells * kBytesPerCell;
  ResultFiles files;
  absl::Status status = OpenOne(options.json_path, reserve, &files.json_);
  status.Update(OpenOne(options.csv_path, reserve, &files.csv_));
  status.Update(OpenOne(options.html_path, reserve + kPageBytes, &files.html_));
  if (!status.ok()) return status;
  return files;
}

absl::Status ResultFiles::Write(const std::vector<CellSummary>& cells,
                                absl::string_view command) {
  absl::Status status;
  if (json_ != nullptr) status.Update(json_->Write(ToJson(cells)));
  if (csv_ != nullptr) status.Update(csv_->Write(ToCsv(cells)));
  if (html_ != nullptr) status.Update(html_->Write(ToHtml(cells, command)));
  return status;
}

}  // namespace bench
}  // namespace penstock
