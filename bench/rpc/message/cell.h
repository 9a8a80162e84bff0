// The cells of the benchmark's table: a benchmark, a transport, one of gRPC's
// C++ APIs, and a message size.

#ifndef PENSTOCK_BENCH_RPC_MESSAGE_CELL_H_
#define PENSTOCK_BENCH_RPC_MESSAGE_CELL_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/rpc/message/buffers.h"
#include "bench/rpc/message/message.h"

namespace penstock {
namespace bench {

enum class Benchmark {
  kLatency,    // one unary RPC at a time per caller
  kBandwidth,  // a window of unary RPCs outstanding per caller
  kPush,       // as kBandwidth, with a reply of 8 bytes
  kStream,     // messages over one client-streaming call per caller
  // A stream of one repeated message, which the receiver does not read.
  kResend,
  kHandover,  // unary RPCs from pool memory, timed until the handler begins
  kServers,   // kPush with many clients, each calling all of many servers
  kReplay,    // the calls of a recording
  kBeside,    // tiny unary RPCs, one at a time, during a window of large ones
  kIdle,      // connected channels without traffic
};

// gRPC's three C++ APIs. A cell's client and server use the same API.
enum class Api { kSync, kAsync, kCallback };

enum class Transport {
  kTcp,          // stock gRPC, TCP
  kUds,          // stock gRPC, UNIX socket
  kInproc,       // stock gRPC, within one process
  kPenstockTcp,  // Penstock's frames on TCP
  kShm,          // Penstock over shared memory
  kVerbs,        // Penstock over RDMA
  kTls,          // stock gRPC, TCP with TLS
  kPenstockTls,  // Penstock's frames on TCP with TLS
  kShmTls,       // Penstock over shared memory, for connections with TLS
  // HTTP/2 over TCP, with Penstock on one side and stock gRPC on the other.
  kPenstockClient,
  kPenstockServer,
};

// Returns true if the connections are encrypted.
bool HasTls(Transport transport);

// Returns the transports of a run that names none: those that carry plain
// messages between equal sides.
const std::vector<Transport>& DefaultTransports();

// Return all values of an enumeration, in the table's order.
const std::vector<Benchmark>& AllBenchmarks();
const std::vector<Api>& AllApis();
const std::vector<Transport>& AllTransports();
const std::vector<MessageForm>& AllMessageForms();

// Return the names for flags, table and JSON. ParseBenchmark() also accepts the
// names of TF-gRPC-Bench: p2p-latency and p2p-bandwidth.
absl::string_view Name(Benchmark benchmark);
absl::string_view Name(Api api);
absl::string_view Name(Transport transport);
absl::string_view Name(MessageForm form);

// Parse a name that Name() returns. The error lists all names.
absl::StatusOr<Benchmark> ParseBenchmark(absl::string_view name);
absl::StatusOr<Api> ParseApi(absl::string_view name);
absl::StatusOr<Transport> ParseTransport(absl::string_view name);
absl::StatusOr<MessageForm> ParseMessageForm(absl::string_view name);

// The maximal message size in bytes. gRPC counts a message's bytes in 31 bits.
constexpr size_t kMaxPayload = size_t{1} << 30;

// Convert "64KiB" to 65536, and back. Suffixes are none or B; kB, MB, GB
// (powers of 1000); KiB, MiB, GiB (powers of 1024). ParseSize() rejects less
// than kMinPayload bytes (payload.h) and more than kMaxPayload.
absl::StatusOr<size_t> ParseSize(absl::string_view text);
std::string FormatSize(size_t bytes);

// Returns a text such as ", 8 clients", or "" for 0.
std::string FormatClients(int clients);

struct Cell {
  Benchmark benchmark;
  Transport transport;
  Api api;
  size_t bytes;  // message size
  Buffers buffers = {};
  int clients = 0;  // client processes, for kServers; 0 for others
};

// Returns a description such as "latency, tcp, sync, 64KiB", or "ps-throughput,
// tcp, sync, 64KiB, 8 clients".
std::string ToString(const Cell& cell);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_MESSAGE_CELL_H_
