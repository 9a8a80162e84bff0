// Measures receiving tensors into the program's memory, by a copy out of the
// message or with the transport's help.
//
//   bazel build //bench/tensors:receive
//   bazel-bin/bench/tensors/receive verbs    # or shm, tcp; verbs by default
//
// Server and client are one process. Fetches a tensor of each size repeatedly,
// in one of four ways, in random order. Prints the median microseconds of a
// call, until all bytes are at their destination:
//
//   message   no destination: the bytes may stay in the message
//   copied    the message is received, and copied to the destination
//   once      the transport knows the destination, for this call
//   prepared  the same, for all calls

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "penstock/penstock.h"
#include "tensor_service/client.h"
#include "tensor_service/direct_receive.h"
#include "tensor_service/pool_allocator.h"
#include "tensor_service/prepared_destinations.h"
#include "tensor_service/service.h"
#include "tensor_service/status.h"
#include "tensor_service/store.h"

namespace penstock::bench {
namespace {

constexpr size_t kKiB = 1024;
constexpr int kLeastCalls = 15;
constexpr std::chrono::seconds kForASize(3);
const std::vector<std::string> kNames = {"x"};

enum class Way { kMessage, kCopied, kOnce, kPrepared };
constexpr Way kWays[] = {Way::kMessage, Way::kCopied, Way::kOnce,
                         Way::kPrepared};
constexpr int kWayCount = 4;

tensor::Tensor Allocate(size_t bytes, tensor::Allocator* allocator) {
  return *tensor::Tensor::Allocate(tensor::DType::kUint8,
                                   {static_cast<int64_t>(bytes)}, allocator);
}

// A client that fetches a tensor of one size in each of these ways.
class Receiver {
 public:
  Receiver(tensor::TensorClient* client, size_t bytes)
      : client_(client),
        into_(Allocate(bytes, tensor::HeapAllocator())),
        prepared_({tensor::Destination("x", into_)}) {}

  // Makes one call, and returns its microseconds. Ends the process if the call
  // fails.
  double Call(Way way) {
    tensor::SetDirectReceiver(
        way == Way::kOnce ? tensor::DirectReceiverBy<penstock::Destinations>()
                          : nullptr);
    std::vector<tensor::Destination> places;
    if (way == Way::kCopied || way == Way::kOnce) {
      places.emplace_back("x", into_);
    }
    const auto begin = std::chrono::steady_clock::now();
    const auto got = way == Way::kPrepared
                         ? client_->Get(kNames, &prepared_)
                         : client_->Get(kNames, absl::MakeSpan(places));
    const std::chrono::duration<double, std::micro> taken =
        std::chrono::steady_clock::now() - begin;
    if (!got.ok()) {
      fprintf(stderr, "%s\n", got.status().ToString().c_str());
      exit(1);
    }
    if (way == Way::kOnce) once_landed_ = places[0].landed;
    return taken.count();
  }
  std::string Landed() {
    return absl::StrCat(once_landed_ ? "once " : "",
                        prepared_.destinations()[0].landed ? "prepared" : "");
  }

 private:
  tensor::TensorClient* const client_;
  const tensor::Tensor into_;
  tensor::PreparedDestinations prepared_;
  bool once_landed_ = false;
};

void Measure(tensor::TensorClient* client, size_t bytes) {
  tensor::Bundle bundle;
  bundle.tensors.push_back(
      {"x", Allocate(bytes, tensor::PoolAllocator<penstock::Allocator>())});
  if (!client->Put(bundle).ok()) exit(1);
  tensor::SetDirectReceiver(tensor::DirectReceiverBy<penstock::Destinations>());
  Receiver receiver(client, bytes);
  std::vector<double> taken[kWayCount];
  int order[kWayCount] = {0, 1, 2, 3};
  std::mt19937 random(1);  // the same order in each run
  const auto end = std::chrono::steady_clock::now() + kForASize;
  for (int i = 0; i < kLeastCalls || std::chrono::steady_clock::now() < end;
       ++i) {
    std::shuffle(std::begin(order), std::end(order), random);
    for (int way : order) {
      const double us = receiver.Call(kWays[way]);
      if (i > 2) taken[way].push_back(us);
    }
  }
  printf("%8zu KiB", bytes / kKiB);
  for (std::vector<double>& figures : taken) {
    std::nth_element(figures.begin(), figures.begin() + figures.size() / 2,
                     figures.end());
    printf("%11.1f", figures[figures.size() / 2]);
  }
  printf("   landed: %s\n", receiver.Landed().c_str());
}

int Main(const std::string& fabric) {
  Options options;
  options.policy = Policy::kRequire;
  options.fabrics = {fabric == "shm"   ? Fabric::kShm
                     : fabric == "tcp" ? Fabric::kTcp
                                       : Fabric::kVerbs};
  tensor::TensorStore store(size_t{1} << 30);
  const auto service = tensor::MakeTensorService(&store);
  grpc::ServerBuilder builder;
  Enable(&builder, options);
  tensor::AllowUnlimitedMessages(&builder);
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(service.get());
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  tensor::TensorClient client(grpc::CreateCustomChannel(
      absl::StrCat("127.0.0.1:", port),
      Credentials(grpc::InsecureChannelCredentials(), options),
      tensor::UnlimitedMessages()));
  printf("%s, us%18s%11s%11s%11s\n", fabric.c_str(), "message", "copied",
         "once", "prepared");
  for (size_t kib : {64, 256, 1024, 4096, 16384}) Measure(&client, kib * kKiB);
  server->Shutdown();
  return 0;
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  return penstock::bench::Main(argc > 1 ? argv[1] : "verbs");
}
