// Penstock: RDMA, shared memory and TCP for unmodified gRPC.
//
// A server adds one line before BuildAndStart, a client wraps its credentials;
// stubs, services, ports, targets and security stay as they are:
//
//   grpc::ServerBuilder builder;
//   penstock::Enable(&builder);
//   builder.AddListeningPort("0.0.0.0:50051", credentials);
//
//   auto channel = grpc::CreateChannel("dns:///ps0:50051",
//                                      penstock::Credentials(credentials));
//
// Each connection then finds out by itself which fabric can carry it and says
// so in one log line. A peer that is not Penstock gets HTTP/2 on the same port.
//
// Thread safety: every function here may be called from any thread.

#ifndef PENSTOCK_TRANSPORT_PENSTOCK_H_
#define PENSTOCK_TRANSPORT_PENSTOCK_H_

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "grpcpp/channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/server_builder.h"
#include "transport/allocator.h"
#include "transport/options.h"

namespace penstock {

// Makes every port of the server that `builder` will start speak Penstock
// beside HTTP/2. Call it once, before BuildAndStart. Where this process cannot
// (another gRPC release, a bad setting), it logs one sentence that says why and
// the server is a stock one; with Policy::kRequire BuildAndStart then fails.
void Enable(grpc::ServerBuilder* builder, const Options& options = {});

// Channel credentials that secure a connection as `credentials` would and then
// offer Penstock to the peer. Channels of different options share nothing.
// Where this process cannot, it logs one sentence that says why and returns
// `credentials`; with Policy::kRequire, credentials whose channels fail each
// call with FAILED_PRECONDITION and that sentence.
std::shared_ptr<grpc::ChannelCredentials> Credentials(
    std::shared_ptr<grpc::ChannelCredentials> credentials,
    const Options& options = {});

// Memory that its owner sends from again and again, over RDMA. A device reads
// only what was registered with it, page by page and by system calls. Memory
// that is named here stays registered, as far as Options::verbs_cache_mib and
// the limit of locked memory go, and is sent from where it lies. Sending from
// other memory is as right, and slower.
//
// The owner promises that, while the object lives, the memory stays mapped to
// the same pages: it is not freed, unmapped, mapped anew or given back with
// madvise(). Writing to it is no more and no less allowed than ever: not while
// a slice of it is being sent. Break the promise, and peers get what was there
// before.
class RegisteredMemory {
 public:
  virtual ~RegisteredMemory() = default;
};

// Names [data, data + size). To be destroyed before the memory is freed, at any
// time: what is being sent then is kept by its slices. Null for no memory, and
// for memory of which a part is named already, as Allocator's is.
std::unique_ptr<RegisteredMemory> RegisterMemory(const void* data, size_t size);

// What carries one live connection of a channel.
struct PathReport {
  std::string peer;    // "ipv4:127.0.0.1:50051"
  std::string path;    // "shm", "tcp" or "http2"
  std::string detail;  // what the path is made of, e.g. "ring 1 MiB"
  std::string reason;  // why it is not a better one; empty if it is the best
  // What the path is used with at present, as measured on it or as set; 0 for
  // http2: up to which size this side sends messages eagerly, and the pieces in
  // which it reads larger ones, where it does not use them in place.
  uint64_t eager_max_bytes = 0;
  uint64_t chunk_bytes = 0;
  uint64_t messages_sent = 0;
  uint64_t messages_received = 0;
  uint64_t bytes_sent = 0;  // payload of messages, without headers
  uint64_t bytes_received = 0;

  // One line: "shm (ring 1 MiB)", "tcp: peer is on another host".
  std::string ToString() const;
};

std::ostream& operator<<(std::ostream& out, const PathReport& report);

// The live connections of `channel`, one report each, those of a channel made
// without Credentials() too; none before the first call has connected it.
// Beside another gRPC release, one report that says so and names no peer.
std::vector<PathReport> DescribePaths(grpc::Channel& channel);

}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PENSTOCK_H_
