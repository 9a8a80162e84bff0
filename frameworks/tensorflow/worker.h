// The server's side: sends this task's tensors to its peers.

#ifndef PENSTOCK_FRAMEWORKS_TENSORFLOW_WORKER_H_
#define PENSTOCK_FRAMEWORKS_TENSORFLOW_WORKER_H_

#include <atomic>
#include <functional>
#include <memory>

#include "frameworks/tensorflow/hello.h"
#include "frameworks/tensorflow/reducers.h"
#include "tensorflow/core/distributed_runtime/rpc/grpc_worker_service.h"
#include "transport/rpc/server.h"

namespace penstock {
namespace tensorflow {

// A task's worker. TensorFlow's services call it over gRPC, and peers with the
// plugin call it over the data plane. Lives as long as the process.
class Worker final : public ::tensorflow::GrpcWorker {
 public:
  Worker(::tensorflow::WorkerEnv* env, const ::tensorflow::ConfigProto& config)
      : GrpcWorker(env, config) {}

  // Sets the answer for peers that ask for the data plane. Call it once, before
  // TensorFlow's services start.
  void SetHello(const Hello& hello) { hello_ = hello; }

  // Sets the teams of this task. Call once, like SetHello().
  void SetReducers(Reducers* reducers) { reducers_ = reducers; }

  // Answers one call of the data plane.
  void Handle(const std::shared_ptr<rpc::IncomingCall>& call);

  // Checks the graph for variables that are updated in place.
  void RegisterGraphAsync(const ::tensorflow::RegisterGraphRequest* request,
                          ::tensorflow::RegisterGraphResponse* response,
                          ::tensorflow::StatusCallback done) override;

  // Answers a hello. Delegates all other requests to GrpcWorker.
  void GrpcRecvTensorAsync(::tensorflow::CallOptions* options,
                           const ::tensorflow::RecvTensorRequest* request,
                           ::grpc::ByteBuffer* response,
                           ::tensorflow::StatusCallback done) override;

 private:
  void HandleRecvTensor(const std::shared_ptr<rpc::IncomingCall>& call);
  void HandleRecvBuf(const std::shared_ptr<rpc::IncomingCall>& call);
  void HandleHasTeams(const std::shared_ptr<rpc::IncomingCall>& call);
  void HandleJoinTeam(const std::shared_ptr<rpc::IncomingCall>& call);
  void HandleRunGraph(const std::shared_ptr<rpc::IncomingCall>& call);
  struct GraphRun;
  void Run(const std::shared_ptr<rpc::IncomingCall>& call,
           const std::shared_ptr<GraphRun>& run);

  Hello hello_;                   // no port: there is no data plane
  Reducers* reducers_ = nullptr;  // null: this task has no teams
  // True if a graph of this task has variables of TensorFlow 1
  // (use_resource=False). Such variables are updated in place even while they
  // are shared. A peer that used such a variable in our memory would see it
  // change within a step.
  std::atomic<bool> has_ref_variables_{false};
};

// The methods of the data plane.
constexpr char kPing[] = "Ping";
// A method that receives a tensor. Metadata: a RecvTensorRequest. Answer:
// EncodeTensor().
constexpr char kRecvTensor[] = "RecvTensor";
// A method that receives a buffer of a collective operation. Metadata: a
// RecvBufRequest. Answer: the payload. The answer's metadata is kWaits if a
// step of the answering task waits until the payload is released. The receiver
// then sends a ping after releasing the payload.
constexpr char kRecvBuf[] = "RecvBuf";
constexpr char kWaits[] = "waits";
// A method by which rank 0 of a team asks whether a task has teams. The answer
// is an error if not.
constexpr char kHasTeams[] = "HasTeams";
// A method that asks rank 0 of a team for an invitation. Metadata: a Joiner.
// Answer: the invitation, as metadata.
constexpr char kJoinTeam[] = "JoinTeam";
// A method that runs a graph. Request: a RunGraphRequest, by SetProto().
// Answer: a RunGraphResponse.
constexpr char kRunGraph[] = "RunGraph";

}  // namespace tensorflow
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_WORKER_H_
