// The server's side: gives the tensors of this task to its peers.

#ifndef PENSTOCK_FRAMEWORKS_TENSORFLOW_WORKER_H_
#define PENSTOCK_FRAMEWORKS_TENSORFLOW_WORKER_H_

#include <atomic>
#include <functional>
#include <memory>

#include "frameworks/tensorflow/hello.h"
#include "tensorflow/core/distributed_runtime/rpc/grpc_worker_service.h"
#include "transport/rpc/server.h"

namespace penstock {
namespace tensorflow {

// A task's worker. TensorFlow's services ask it over gRPC, as ever, and peers
// with the plugin over the data plane. Lives as long as the process.
class Worker final : public ::tensorflow::GrpcWorker {
 public:
  Worker(::tensorflow::WorkerEnv* env, const ::tensorflow::ConfigProto& config)
      : GrpcWorker(env, config) {}

  // Tells peers that ask where the data plane is. Call it once, before
  // TensorFlow's services begin.
  void SetHello(const Hello& hello) { hello_ = hello; }

  // Answers one call of the data plane.
  void Handle(const std::shared_ptr<rpc::IncomingCall>& call);

  // Looks for variables that are written to where they lie.
  void RegisterGraphAsync(const ::tensorflow::RegisterGraphRequest* request,
                          ::tensorflow::RegisterGraphResponse* response,
                          ::tensorflow::StatusCallback done) override;

  // Answers a hello, and leaves all else to GrpcWorker.
  void GrpcRecvTensorAsync(::tensorflow::CallOptions* options,
                           const ::tensorflow::RecvTensorRequest* request,
                           ::grpc::ByteBuffer* response,
                           ::tensorflow::StatusCallback done) override;

 private:
  void HandleRecvTensor(const std::shared_ptr<rpc::IncomingCall>& call);
  void HandleRecvBuf(const std::shared_ptr<rpc::IncomingCall>& call);
  void HandleRunGraph(const std::shared_ptr<rpc::IncomingCall>& call);
  struct GraphRun;
  void Run(const std::shared_ptr<rpc::IncomingCall>& call,
           const std::shared_ptr<GraphRun>& run);

  Hello hello_;  // without a port: there is no data plane
  // A graph of this task has variables of TensorFlow 1 (use_resource=False).
  // These are updated in place, however many hold their tensor: who used it in
  // our memory would see it change within a step.
  std::atomic<bool> has_ref_variables_{false};
};

// The methods of the data plane.
constexpr char kPing[] = "Ping";
// Metadata: a RecvTensorRequest. Answer: EncodeTensor().
constexpr char kRecvTensor[] = "RecvTensor";
// Metadata: a RecvBufRequest. Answer: the payload; with the metadata kWaits if
// a step of the answering task waits until the payload is let go of: send a
// ping then.
constexpr char kRecvBuf[] = "RecvBuf";
constexpr char kWaits[] = "waits";
// A RunGraphRequest, by SetProto(). Answer: a RunGraphResponse.
constexpr char kRunGraph[] = "RunGraph";

}  // namespace tensorflow
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_WORKER_H_
