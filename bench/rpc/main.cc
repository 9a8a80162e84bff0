// rpc: latency and bandwidth of one RPC over gRPC's and Penstock's transports.
//
// The measured time, from the caller's side, consists of these steps:
//
// - The caller writes a new request buffer of the given size, and sends it.
// - The server, in another process, reads every byte and checks the sum. The
// server writes a new reply buffer of the same size, and sends it.
// - The caller reads every byte of the reply, and checks it.
//
// A transport that passes on memory without a copy therefore pays for the
// reading like every other transport. A stream measures the time between
// consecutive messages, and checks at its end that the reader received all of
// them.
//
// docs/method.md describes the method; --help lists the flags. Exit codes: 0
// measured; 1 an error, or an explicitly requested transport is unavailable; 2
// an invalid flag.

#include <errno.h>  // program_invocation_short_name

#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/rpc/client_role.h"
#include "bench/rpc/message/cell.h"
#include "bench/rpc/message/devices.h"
#include "bench/rpc/message/message.h"
#include "bench/rpc/message/tensor_form.h"
#include "bench/rpc/report/report.h"
#include "bench/rpc/report/result_files.h"
#include "bench/rpc/runner.h"
#include "bench/rpc/server/server_role.h"
#include "bench/rpc/setup/identity.h"
#include "bench/rpc/setup/options.h"

namespace penstock {
namespace bench {
namespace {

constexpr int kOk = 0;
constexpr int kFailed = 1;
constexpr int kWrongFlag = 2;

// Returns "rpc", or "penstock bench" if run by that command.
std::string OwnName() { return program_invocation_short_name; }

int Complain(int code, absl::string_view message) {
  std::cerr << OwnName() << ": " << message << std::endl;
  return code;
}

int WrongFlag(absl::string_view message) {
  Complain(kWrongFlag, message);
  const bool is_rpc = OwnName() == "rpc";
  return Complain(kWrongFlag, absl::StrCat("try: ", OwnName(),
                                           is_rpc ? " --help" : " --flags"));
}

// Fails if the table cannot be written, for example because the disk is full.
int FlushTable(int code) {
  std::cout.flush();
  if (!std::cout) return Complain(kFailed, "cannot write the table");
  return code;
}

template <typename T>
void PrintNames(absl::string_view what, const std::vector<T>& values) {
  std::cout << what << ": "
            << absl::StrJoin(values, ", ",
                             [](std::string* out, T value) {
                               absl::StrAppend(out, Name(value));
                             })
            << "\n";
}

int List() {
  PrintNames("benchmarks", AllBenchmarks());
  PrintNames("transports", AllTransports());
  PrintNames("apis", AllApis());
  PrintNames("messages", AllMessageForms());
  return FlushTable(kOk);
}

// Returns a failure if an explicitly requested transport, or every transport,
// was not measured.
int ExitCode(const RunOptions& options,
             const std::vector<CellSummary>& summaries) {
  size_t missing = 0;
  for (const CellSummary& summary : summaries) {
    if (!summary.unavailable.empty()) ++missing;
  }
  if (missing == 0) return kOk;
  if (options.transports_named || missing == summaries.size()) {
    return Complain(kFailed, "a transport is unavailable, see the table");
  }
  return kOk;
}

// Prints the calls that a replay cannot repeat.
void WarnOfGaps(const Recording& recording) {
  if (recording.left_out > 0) {
    std::cerr << OwnName() << ": the recording lacks " << recording.left_out
              << " calls, or what followed in them\n";
  }
  if (recording.unfinished > 0) {
    std::cerr << OwnName() << ": " << recording.unfinished
              << " calls had not ended when the recording did\n";
  }
  if (recording.goes_on) {
    std::cerr << "rpc: the recording continues after its first "
              << recording.calls.size() << " calls, which are replayed\n";
  }
  if (recording.recorded_clients > recording.clients) {
    std::cerr << "rpc: the recording's " << recording.recorded_clients
              << " clients share " << recording.clients << " connections\n";
  }
}

absl::StatusOr<std::vector<CellSummary>> Run(RunOptions options) {
  if (absl::c_any_of(options.transports, HasTls)) {
    absl::StatusOr<std::string> identity = MakeIdentity();
    if (!identity.ok()) return identity.status();
    options.identity = *std::move(identity);
  }
  return Runner(options).Run();
}

int Measure(const RunOptions& options, const std::string& command) {
  absl::Status built;
  if (options.on_device) built.Update(CheckDevice());
  if (options.message == MessageForm::kTensor) built.Update(CheckTensorForm());
  if (!built.ok()) return Complain(kFailed, built.message());
  if (options.recording != nullptr) WarnOfGaps(*options.recording);
  absl::StatusOr<ResultFiles> files = ResultFiles::Open(options);
  if (!files.ok()) return Complain(kFailed, files.status().message());
  const auto summaries = Run(options);
  if (!summaries.ok()) return Complain(kFailed, summaries.status().message());
  PrintTable(*summaries, {options.page_faults, options.details}, std::cout);
  const absl::Status written = files->Write(*summaries, command);
  if (!written.ok()) return Complain(kFailed, written.message());
  return FlushTable(ExitCode(options, *summaries));
}

int Main(int argc, char** argv) {
  const absl::StatusOr<CommandLine> command = ParseCommandLine(argc, argv);
  if (!command.ok()) return WrongFlag(command.status().message());
  if (command->help.has_value()) {
    std::cout << *command->help;
    return FlushTable(kOk);
  }
  const RunOptions& options = command->options;
  if (options.list) return List();
  SetMessageForm(options.message);
  SetMessageBuffers(options.buffers.count,
                    options.buffers.scheme == Scheme::kEqual
                        ? BufferSizes()
                        : MixedBuffers(options.buffers, options.sizes));
  if (options.server_role) RunServerRole(options);
  if (options.client_role) RunClientRole(options);
  return Measure(options, absl::StrJoin(argv, argv + argc, " "));
}

}  // namespace
}  // namespace bench
}  // namespace penstock

int main(int argc, char** argv) { return penstock::bench::Main(argc, argv); }
