#include "bench/tensors/server.h"

#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/types/optional.h"
#include "bench/rpc/message/devices.h"
#include "bench/rpc/setup/transports.h"
#include "bench/tensors/device_steps.h"
#include "bench/tensors/step.grpc.pb.h"
#include "bench/tensors/sum.h"
#include "bench/tensors/system.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "penstock/penstock.h"
#include "tensor_service/calls.h"
#include "tensor_service/codec.h"
#include "tensor_service/direct_receive.h"
#include "tensor_service/status.h"

namespace penstock::bench {
namespace {

constexpr int kStartTimeoutMs = 10000;
constexpr absl::string_view kErrorPrefix = "error: ";

// Records the time of the hand-over, and then reads the tensors. `bytes_of`
// returns a tensor's bytes.
template <typename Tensors, typename BytesOf>
v1::StepReply Read(const Tensors& tensors, BytesOf bytes_of) {
  v1::StepReply reply;
  reply.set_handed_ns(MonotonicNs());
  uint64_t sum = 0;
  for (const auto& named : tensors) sum += SumOf(bytes_of(named));
  reply.set_read_ns(MonotonicNs());
  reply.set_sum(sum);
  reply.set_page_faults(PageFaults());
  return reply;
}

class StepService final
    : public v1::Step::WithCallbackMethod_Generated<
          v1::Step::WithRawCallbackMethod_Codec<v1::Step::Service>> {
 public:
  explicit StepService(const Contender& contender)
      : wants_on_device_(contender.to == Memory::kDevice) {}

  grpc::ServerUnaryReactor* Generated(grpc::CallbackServerContext* context,
                                      const tensor::v1::Bundle* request,
                                      v1::StepReply* reply) override {
    *reply =
        Read(request->tensors(),
             [](const tensor::v1::NamedTensor& named) -> const std::string& {
               return named.tensor().data();
             });
    return Finish(context, absl::OkStatus());
  }

  grpc::ServerUnaryReactor* Codec(grpc::CallbackServerContext* context,
                                  const grpc::ByteBuffer* request,
                                  grpc::ByteBuffer* reply) override {
    if (wants_on_device_) {
      return Finish(context, ReceiveOnDevice(*request, reply));
    }
    const absl::StatusOr<tensor::Bundle> bundle = tensor::Decode(*request);
    if (!bundle.ok()) return Finish(context, bundle.status());
    *reply = tensor::FromProto(Read(
        bundle->tensors,
        [](const tensor::NamedTensor& named) { return named.tensor.bytes(); }));
    return Finish(context, absl::OkStatus());
  }

 private:
  // Takes no lock, because the client makes one call at a time.
  absl::Status ReceiveOnDevice(const grpc::ByteBuffer& request,
                               grpc::ByteBuffer* reply) {
    const auto received = receiver_.Receive(request);
    if (!received.ok()) return received.status();
    v1::StepReply answer;
    answer.set_handed_ns(received->handed_ns);
    answer.set_read_ns(received->read_ns);
    answer.set_sum(received->sum);
    answer.set_unread(!received->has_sum);
    answer.set_on_device_bytes(received->on_device_bytes);
    answer.set_page_faults(PageFaults());
    *reply = tensor::FromProto(answer);
    return absl::OkStatus();
  }

  static grpc::ServerUnaryReactor* Finish(grpc::CallbackServerContext* context,
                                          const absl::Status& status) {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(tensor::ToGrpc(status));
    return reactor;
  }

  const bool wants_on_device_;
  DeviceReceiver receiver_{kGpu};
};

// Lets this process receive requests on devices, if the contender uses them.
absl::Status PrepareDevice(const Contender& contender) {
  if (!UsesDevice(contender)) return absl::OkStatus();
  absl::Status status = UseDevice();
  if (status.ok()) tensor::GetDirectReceiver()->AcceptAt(kCodecPath);
  return status;
}

}  // namespace

absl::StatusOr<StepServer> StartServer(const Contender& contender,
                                       const std::string& host) {
  auto process =
      ChildProcess::Start({absl::StrCat(kServerFlag, "=", contender.name),
                           absl::StrCat(kHostFlag, "=", host)});
  if (!process.ok()) return process.status();
  absl::StatusOr<std::string> line = (*process)->ReadLine(kStartTimeoutMs);
  if (!line.ok()) return line.status();
  absl::string_view text = *line;
  if (absl::ConsumePrefix(&text, kErrorPrefix)) {
    return absl::UnavailableError(text);
  }
  return StepServer{*std::move(line), *std::move(process)};
}

// A thread that waits in gRPC on an unused completion queue, until the queue is
// shut down.
//
// The threads of gRPC's callback API sleep for 0.1 s after each second in which
// no call has begun or ended. Calls in progress pause during this sleep. On the
// machine for verbs, where a step takes seconds, such pauses would be measured.
class Waiter {
 public:
  explicit Waiter(grpc::ServerBuilder* builder)
      : queue_(builder->AddCompletionQueue()) {}
  void Start() {
    thread_ = std::thread([this] {
      void* tag;
      bool ok;
      while (queue_->Next(&tag, &ok)) {
      }
    });
  }
  // Ends the thread. Call it after the server's shutdown.
  void Stop() {
    queue_->Shutdown();
    thread_.join();
  }

 private:
  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::thread thread_;
};

void RunServer(const Contender& contender, const std::string& host) {
  BecomeChild();
  const absl::Status device = PrepareDevice(contender);
  if (!device.ok()) {
    SendLine(absl::StrCat(kErrorPrefix, device.message()));
    LeaveChild(1);
  }
  StepService service(contender);
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(-1);
  if (const auto options =
          PenstockOptions(contender.transport, Side::kServer, "")) {
    Enable(&builder, *options);
  }
  const std::string address = ListenAddress(contender.transport, host);
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  absl::optional<Waiter> waiter;
  if (contender.transport == Transport::kVerbs) waiter.emplace(&builder);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    SendLine(absl::StrCat(kErrorPrefix, "cannot serve over ",
                          Name(contender.transport)));
    LeaveChild(1);
  }
  if (waiter.has_value()) waiter->Start();
  SendLine(ConnectAddress(address, port));
  AwaitParent();
  server->Shutdown(absl::ToChronoTime(absl::Now()));
  if (waiter.has_value()) waiter->Stop();
  LeaveChild(0);
}

}  // namespace penstock::bench
