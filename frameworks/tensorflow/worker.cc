#include "frameworks/tensorflow/worker.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "frameworks/tensorflow/on_host.h"
#include "frameworks/tensorflow/pool_allocator.h"
#include "frameworks/tensorflow/proto_message.h"
#include "frameworks/tensorflow/run_on_pool.h"
#include "frameworks/tensorflow/tensor_message.h"
#include "tensorflow/core/common_runtime/buf_rendezvous.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/distributed_runtime/call_options.h"
#include "tensorflow/core/distributed_runtime/message_wrappers.h"
#include "tensorflow/core/distributed_runtime/rendezvous_mgr_interface.h"
#include "tensorflow/core/distributed_runtime/rpc/grpc_tensor_coding.h"
#include "tensorflow/core/distributed_runtime/worker_env.h"
#include "tensorflow/core/framework/collective.h"
#include "tensorflow/core/platform/env.h"

namespace penstock {
namespace tensorflow {

using ::tensorflow::BufRendezvous;
using ::tensorflow::CollectiveExecutor;
using ::tensorflow::Device;
using ::tensorflow::RecvBufRequest;
using ::tensorflow::RecvTensorRequest;
using ::tensorflow::Rendezvous;
using ::tensorflow::Tensor;
using Incoming = std::shared_ptr<rpc::IncomingCall>;

namespace {

// Returns true if the op is a variable of TensorFlow 1. Graphs have such
// variables only at the top level: functions capture only resources.
bool IsRefVariable(const std::string& op) {
  return op == "VariableV2" || op == "Variable" || op == "TemporaryVariable";
}

absl::StatusOr<rpc::Response> EncodeBuffer(
    const absl::StatusOr<Tensor>& tensor,
    const std::shared_ptr<BufRendezvous::Hook>& hook) {
  if (!tensor.ok()) return tensor.status();
  if (!::tensorflow::DataTypeCanUseMemcpy(tensor->dtype())) {
    return absl::InternalError("a collective's tensor is of no plain type");
  }
  rpc::Response response;
  if (tensor->TotalBytes() == 0) return response;
  memory::Bytes bytes = BytesOf(*tensor);
  bytes.owner = std::make_shared<
      std::pair<std::shared_ptr<BufRendezvous::Hook>, memory::Bytes>>(hook,
                                                                      bytes);
  response.payload = memory::Payload(std::move(bytes));
  // Tells the peer if a step waits for the release of the bytes. Without the
  // pool, the bytes are copied immediately, and no step waits.
  if (TensorsLieInPool()) response.metadata = kWaits;
  return response;
}

absl::Status NoTeams() {
  return absl::FailedPreconditionError(
      "PENSTOCK_TENSORFLOW_ALL_REDUCE is not group there");
}

absl::StatusOr<rpc::Response> EncodeProto(
    const ::tensorflow::RunGraphResponse& proto) {
  rpc::Response response;
  if (!SetProto(proto, &response)) {
    return absl::InternalError("a RunGraph's answer has 2 GiB or more");
  }
  return response;
}

}  // namespace

// The objects that TensorFlow refers to while a graph runs.
struct Worker::GraphRun {
  ::tensorflow::CallOptions options;
  ::tensorflow::RunGraphRequest request;
  ::tensorflow::RunGraphResponse response;
  ::tensorflow::ProtoRunGraphRequest wrapped_request{&request};
  ::tensorflow::NonOwnedProtoRunGraphResponse wrapped_response{&response};
  std::atomic<bool> cancelled{false};
};

void Worker::GrpcRecvTensorAsync(::tensorflow::CallOptions* options,
                                 const RecvTensorRequest* request,
                                 ::grpc::ByteBuffer* response,
                                 ::tensorflow::StatusCallback done) {
  if (!IsHelloRequest(*request)) {
    return GrpcWorker::GrpcRecvTensorAsync(options, request, response,
                                           std::move(done));
  }
  if (hello_.port == 0) {
    return done(absl::FailedPreconditionError("PENSTOCK_POLICY is off there"));
  }
  ::tensorflow::grpc::EncodeRecvTensorResponseToByteBuffer(
      HelloResponse(hello_), response);
  done(absl::OkStatus());
}

void Worker::RegisterGraphAsync(
    const ::tensorflow::RegisterGraphRequest* request,
    ::tensorflow::RegisterGraphResponse* response,
    ::tensorflow::StatusCallback done) {
  for (const ::tensorflow::NodeDef& node : request->graph_def().node()) {
    if (IsRefVariable(node.op())) has_ref_variables_ = true;
  }
  GrpcWorker::RegisterGraphAsync(request, response, std::move(done));
}

void Worker::Handle(const Incoming& call) {
  const std::string& method = call->request().method;
  if (method == kRecvTensor) return HandleRecvTensor(call);
  if (method == kRecvBuf) return HandleRecvBuf(call);
  if (method == kHasTeams) return HandleHasTeams(call);
  if (method == kJoinTeam) return HandleJoinTeam(call);
  if (method == kRunGraph) return HandleRunGraph(call);
  if (method == kPing) return call->Respond(rpc::Response());
  call->Respond(absl::UnimplementedError(
      "the peer's penstock-tensorflow does not know this call"));
}

// Answers a request for a tensor, as GrpcWorker::GrpcRecvTensorAsync() does for
// stock peers.
void Worker::HandleRecvTensor(const Incoming& call) {
  RecvTensorRequest request;
  Rendezvous::ParsedKey key;
  Device* source = nullptr;
  absl::Status status =
      request.ParseFromString(call->request().metadata)
          ? Rendezvous::ParseKey(request.rendezvous_key(), &key)
          : absl::InvalidArgumentError("a malformed RecvTensor");
  if (status.ok()) status = PrepareRecvTensor(key, &source);
  if (!status.ok()) return call->Respond(status);
  env()->rendezvous_mgr->RecvLocalAsync(
      request.step_id(), key,
      [this, call, source, name = std::string(request.rendezvous_key())](
          const absl::Status& received, const Rendezvous::Args& sent,
          const Rendezvous::Args&, const Tensor& tensor, bool is_dead) {
        if (!received.ok()) return call->Respond(received);
        OnHost(tensor, source, sent.device_context, sent.alloc_attrs.on_host(),
               name, [this, call, is_dead](absl::StatusOr<Tensor> host) {
                 if (!host.ok()) return call->Respond(host.status());
                 RunHereOrOnPool(
                     EncodingWork(*host), [this, call, is_dead, host = *host] {
                       call->Respond(
                           EncodeTensor(host, is_dead, has_ref_variables_));
                     });
               });
      });
}

// Answers a request for a buffer of a collective, as GrpcWorker::RecvBufAsync()
// does for stock peers.
void Worker::HandleRecvBuf(const Incoming& call) {
  RecvBufRequest request;
  if (!request.ParseFromString(call->request().metadata)) {
    return call->Respond(absl::InvalidArgumentError("a malformed RecvBuf"));
  }
  CollectiveExecutor::Handle executor(
      env()->collective_executor_mgr->FindOrCreate(request.step_id()),
      /*inherit_ref=*/true);
  ::tensorflow::CollectiveRemoteAccess* access =
      executor.get()->remote_access();
  access->buf_rendezvous()->ConsumeBuf(
      request.buf_rendezvous_key(), request.src_device(),
      request.src_incarnation(),
      [call, key = std::string(request.buf_rendezvous_key())](
          const absl::Status& consumed, BufRendezvous::Hook* hook) {
        // Keeps the hook until the peer has the bytes, because the producer
        // overwrites the tensor once the hook is released.
        std::shared_ptr<BufRendezvous::Hook> share;
        if (hook != nullptr) share.reset(hook, BufRendezvous::DoneWithHook);
        if (!consumed.ok()) return call->Respond(consumed);
        OnHost(*hook->prod_value, hook->prod_dev, hook->prod_ctx,
               hook->prod_attr.on_host(), key,
               [call, share](const absl::StatusOr<Tensor>& host) {
                 call->Respond(EncodeBuffer(host, share));
               });
      },
      /*cancellation_manager=*/nullptr);
}

void Worker::HandleHasTeams(const Incoming& call) {
  if (reducers_ == nullptr) return call->Respond(NoTeams());
  call->Respond(rpc::Response());
}

void Worker::HandleJoinTeam(const Incoming& call) {
  const absl::StatusOr<Joiner> joiner = ParseJoiner(call->request().metadata);
  if (!joiner.ok()) return call->Respond(joiner.status());
  if (reducers_ == nullptr) return call->Respond(NoTeams());
  reducers_->meetings()->Add(
      *joiner, [call](const absl::StatusOr<std::string>& invitation) {
        if (!invitation.ok()) return call->Respond(invitation.status());
        rpc::Response response;
        response.metadata = *invitation;
        call->Respond(std::move(response));
      });
}

// Runs a graph, as TensorFlow's own service does for stock peers.
void Worker::HandleRunGraph(const Incoming& call) {
  auto run = std::make_shared<GraphRun>();
  call->OnCancel([run] {
    run->cancelled = true;
    // Cancels on another thread, because notifying kernels may take a while.
    ::tensorflow::Env::Default()->SchedClosure(
        [run] { run->options.StartCancel(); });
  });
  env()->compute_pool->Schedule([this, call, run] { Run(call, run); });
}

void Worker::Run(const Incoming& call, const std::shared_ptr<GraphRun>& run) {
  if (run->cancelled) return call->Respond(absl::CancelledError());
  if (!ParseProto(call->request(), &run->request)) {
    return call->Respond(absl::InvalidArgumentError("a malformed RunGraph"));
  }
  RunGraphAsync(&run->options, &run->wrapped_request, &run->wrapped_response,
                [call, run](const absl::Status& status) {
                  run->options.ClearCancelCallback();
                  if (!status.ok()) return call->Respond(status);
                  call->Respond(EncodeProto(run->response));
                });
  // Cancels the run if the call was cancelled before the run registered for
  // cancellation.
  if (run->cancelled) run->options.StartCancel();
}

}  // namespace tensorflow
}  // namespace penstock
