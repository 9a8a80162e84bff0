// The command line of bench/rpc.

#ifndef PENSTOCK_BENCH_RPC_SETUP_OPTIONS_H_
#define PENSTOCK_BENCH_RPC_SETUP_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "bench/rpc/message/cell.h"
#include "bench/rpc/recording/recording.h"

namespace penstock {
namespace bench {

// Validated options: no list is empty or has duplicates, and every number is in
// range.
struct RunOptions {
  std::vector<Benchmark> benchmarks = {Benchmark::kLatency};
  std::vector<Transport> transports = DefaultTransports();
  // True if the user named the transports: an unavailable transport is then an
  // error. Otherwise, unavailable transports are skipped.
  bool transports_named = false;
  std::vector<Api> apis = AllApis();
  MessageForm message = MessageForm::kRaw;
  bool on_device = false;  // location of messages
  // The message sizes in bytes. If buffers.scheme is not kEqual, the sizes of
  // the buffers of one message.
  std::vector<size_t> sizes = {8, size_t{64} << 10, size_t{1} << 20};
  Buffers buffers;
  // The number of rounds. Two disturbed rounds do not affect the median of
  // five. With 0.2 s a round, about 1,000 RPCs of a small message, the default
  // table takes a minute.
  int rounds = 5;
  double seconds = 0.2;  // per cell and round, unless `rpcs` is set
  int64_t rpcs = 0;  // per cell and round, over all callers; 0: limited by time
  int channels = 1;  // each with its own connection to the one server
  int threads = 1;   // callers on each channel
  int window = 1;    // outstanding RPCs per caller, for kBandwidth and kBeside
  int warm_up = 0;   // RPCs on each channel before its first cell
  // The server's address, which selects the network for TCP.
  std::string address = "127.0.0.1";
  // The RDMA devices of both sides; empty means any.
  std::string client_device;
  std::string server_device;
  bool page_faults = false;  // include page faults in the table
  bool details = false;      // include more percentiles, and CPU time
  std::string json_path;     // empty for none
  std::string csv_path;      // empty for none
  std::string html_path;     // empty for none
  bool list = false;         // only list benchmarks, transports and APIs
  // The file, the recording and the speed for kReplay. kMaxSpeed is unlimited.
  // A replay has as many channels as the recording has clients.
  std::string recording_path;
  std::shared_ptr<const Recording> recording;  // null without a replay
  double speed = kMaxSpeed;
  // The file to which each server process records its calls; empty for none.
  std::string record_path;
  // The number of server processes, and the numbers of client processes, for
  // kServers. Each number of clients is a separate cell.
  int servers = 2;
  std::vector<int> workers = {2};
  // The servers that a client of kServers connects to. Empty if the client
  // starts a server.
  std::vector<std::string> server_addresses;
  // The servers' key and certificate, if a transport has TLS; see
  // MakeIdentity(). The first process makes them.
  std::string identity;
  // True in a child process of that role. A child has one transport and one
  // API, and a client one benchmark.
  bool server_role = false;
  bool client_role = false;

  // Returns the message size of each cell. For kReplay, returns the total size
  // of the recording.
  std::vector<size_t> message_sizes() const;
  // Returns the numbers of client processes of a benchmark's cells: 0 for all
  // but kServers.
  std::vector<int> ClientCounts(Benchmark benchmark) const {
    return benchmark == Benchmark::kServers ? workers : std::vector<int>{0};
  }
};

// The result of parsing the command line.
struct CommandLine {
  RunOptions options;
  // The text of --help, if requested: print it and exit.
  absl::optional<std::string> help;
};

// Parses and checks the flags. Returns INVALID_ARGUMENT, with one sentence, for
// an invalid flag or value.
absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv);

// Returns the flags that make this program the server of one (transport, API).
std::vector<std::string> ServerFlags(const RunOptions& options,
                                     Transport transport, Api api);

// Returns the flags that make this program a client. The client measures the
// sizes of `options` in one round.
std::vector<std::string> ClientFlags(const RunOptions& options,
                                     Benchmark benchmark, Transport transport,
                                     Api api);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_SETUP_OPTIONS_H_
