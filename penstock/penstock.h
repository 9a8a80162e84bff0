// Penstock: RDMA, shared memory and TCP for unmodified gRPC.
//
// A server adds one line before BuildAndStart(), and a client wraps its
// credentials. Stubs, services, ports, targets and security stay as they are:
//
//   grpc::ServerBuilder builder;
//   penstock::Enable(&builder);
//   builder.AddListeningPort("0.0.0.0:50051", credentials);
//
//   auto channel = grpc::CreateChannel("dns:///ps0:50051",
//                                      penstock::Credentials(credentials));
//
// Each connection then chooses the best fabric that both sides have, and logs
// one line that names the fabric. A peer without Penstock is served over HTTP/2
// on the same port.
//
// All functions in this file are thread-safe.

#ifndef PENSTOCK_PENSTOCK_H_
#define PENSTOCK_PENSTOCK_H_

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "grpcpp/channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "penstock/allocator.h"
#include "penstock/destinations.h"
#include "penstock/options.h"

namespace penstock {

// Makes every port of the server that `builder` starts accept Penstock clients
// as well as HTTP/2 clients. Call it once, before BuildAndStart(). With
// Policy::kOff, leaves the builder as it is.
//
// If this process cannot use Penstock (another gRPC release is loaded, or a
// setting is bad), logs the reason, and the server stays a stock one. With
// Policy::kRequire, BuildAndStart() then fails.
void Enable(grpc::ServerBuilder* builder, const Options& options = {});

// Returns channel credentials that secure a connection as `credentials` do, and
// then offer Penstock to the peer. Channels with different settings share no
// connections. Policy::kOff returns `credentials`.
//
// If this process cannot use Penstock, logs the reason and returns
// `credentials`. With Policy::kRequire, returns credentials with which every
// call fails: the status is FAILED_PRECONDITION and gives the reason.
std::shared_ptr<grpc::ChannelCredentials> Credentials(
    std::shared_ptr<grpc::ChannelCredentials> credentials,
    const Options& options = {});

// Declares memory from which the application sends repeatedly over RDMA. A
// device reads only memory that is registered with it, and registering takes
// system calls and time for each page. Declared memory is sent in place, and
// stays registered between messages, within Options::verbs_cache_mib and the
// limit of locked memory. Sending from other memory is correct too, but slower.
//
// While this object lives, the owner of the memory must not free it, unmap it,
// map other pages in its place, or give its pages back with madvise().
// Otherwise peers receive stale bytes, without an error. The usual rule of gRPC
// still holds: do not write to memory while a slice of it is being sent.
class RegisteredMemory {
 public:
  // Ends the declaration. Messages may be in flight: gRPC's slices keep the
  // memory that they need.
  virtual ~RegisteredMemory() = default;
};

// Declares [data, data + size). The caller owns the memory, and destroys the
// result before freeing the memory. Returns null if the range is empty, or if a
// part of the range is declared already. All memory of Allocator is declared
// already.
std::unique_ptr<RegisteredMemory> RegisterMemory(const void* data, size_t size);

// Describes the path of one live connection of a channel.
struct PathReport {
  std::string peer;    // "ipv4:127.0.0.1:50051"
  std::string path;    // "shm", "verbs", "tcp" or "http2"
  std::string detail;  // the parts of the path, such as "ring 256 KiB"
  std::string reason;  // why no better path is used; empty for the best one
  // The current sizes, as set or as measured; 0 for http2. This side sends
  // messages of up to eager_max_bytes eagerly. The receiver reads larger
  // messages in pieces of chunk_bytes, unless the path allows the receiver to
  // use them in place.
  uint64_t eager_max_bytes = 0;
  uint64_t chunk_bytes = 0;
  // Counters since the start of the connection; 0 for http2.
  uint64_t messages_sent = 0;
  uint64_t messages_received = 0;
  uint64_t bytes_sent = 0;  // of messages, without headers
  uint64_t bytes_received = 0;

  // Returns one line: "shm (ring 256 KiB)", "tcp: peer is on another host".
  std::string ToString() const;
};

std::ostream& operator<<(std::ostream& out, const PathReport& report);

// Returns one report for each live connection of `channel`, which need not be
// made with Credentials(). Returns none before the first call has connected the
// channel, and none if the channel has disabled channelz. If another gRPC
// release is loaded, returns one report that says so and names no peer.
std::vector<PathReport> DescribePaths(grpc::Channel& channel);

// Returns one report for each live connection that `server` has accepted.
// Clients without Penstock are included, with the path "http2". The server need
// not be enabled for Penstock, and may be shutting down. Returns none if the
// server has disabled channelz.
std::vector<PathReport> DescribePaths(grpc::Server& server);

}  // namespace penstock

#endif  // PENSTOCK_PENSTOCK_H_
