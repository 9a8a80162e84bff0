// The command line of bench/rpc.

#ifndef PENSTOCK_BENCH_RPC_OPTIONS_H_
#define PENSTOCK_BENCH_RPC_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "bench/rpc/cell.h"
#include "bench/rpc/recording.h"

namespace penstock {
namespace bench {

// Checked values: no list is empty or repeats an element, and every number is
// in its range.
struct RunOptions {
  std::vector<Benchmark> benchmarks = {Benchmark::kLatency};
  std::vector<Transport> transports = AllTransports();
  // Whether the user named the transports. If so, it is an error if one cannot
  // be measured. If not, those that are available here are measured.
  bool transports_named = false;
  std::vector<Api> apis = AllApis();
  MessageForm message = MessageForm::kRaw;
  bool on_device = false;  // where messages lie
  // Of messages; if buffers.scheme is not kEqual, of the buffers of one.
  std::vector<size_t> sizes = {8, size_t{64} << 10, size_t{1} << 20};
  Buffers buffers;
  // The median of five rounds is not moved by two disturbed ones. 0.2 s is
  // about 1,000 RPCs of a small message. The whole default table takes a
  // minute.
  int rounds = 5;
  double seconds = 0.2;  // per cell and round, unless `rpcs` is set
  int64_t rpcs = 0;      // per cell and round over all callers; 0: by time
  int channels = 1;      // each a connection of its own to the one server
  int threads = 1;       // callers on each channel
  int window = 1;        // RPCs outstanding per caller, bandwidth and beside
  int warm_up = 0;       // RPCs on each channel before its first cell
  // Where the server listens, which decides which network TCP goes over.
  std::string address = "127.0.0.1";
  // The RDMA devices of the two sides; empty: any.
  std::string client_device;
  std::string server_device;
  bool page_faults = false;  // whether the table has them
  bool details = false;      // and more percentiles, and CPU time
  std::string json_path;     // empty: no JSON
  std::string csv_path;      // empty: no CSV
  std::string html_path;     // empty: no page
  bool list = false;         // only list what there is
  // For kReplay: what is replayed, from which file, and how fast; kMaxSpeed: as
  // fast as it goes. It has as many channels as the recording has clients.
  std::string recording_path;
  std::shared_ptr<const Recording> recording;  // null without
  double speed = kMaxSpeed;
  // To which file each server process records what it is asked; empty: to none.
  std::string record_path;
  // For kServers: processes of each kind.
  int servers = 2;
  int workers = 2;
  // Where a client of kServers finds its servers; empty: it starts one.
  std::vector<std::string> server_addresses;
  // Roles of child processes, each with one transport and API. A client also
  // has one benchmark.
  bool server_role = false;
  bool client_role = false;

  // The sizes of messages: one cell each. Of kReplay: all bytes of the
  // recording.
  std::vector<size_t> message_sizes() const;
};

// What the command line says to do.
struct CommandLine {
  RunOptions options;
  // Set for --help: print it and leave.
  absl::optional<std::string> help;
};

// Returns INVALID_ARGUMENT, with one sentence, for a wrong flag or value.
absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv);

// Returns the flags that make this program the server of one (transport, API).
std::vector<std::string> ServerFlags(const RunOptions& options,
                                     Transport transport, Api api);

// Returns the flags that make this program a client, which measures the sizes
// of `options` in one round.
std::vector<std::string> ClientFlags(const RunOptions& options,
                                     Benchmark benchmark, Transport transport,
                                     Api api);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_OPTIONS_H_
