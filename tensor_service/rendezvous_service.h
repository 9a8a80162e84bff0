// Serves a Rendezvous as the gRPC service TensorRendezvous.

#ifndef PENSTOCK_TENSOR_SERVICE_RENDEZVOUS_SERVICE_H_
#define PENSTOCK_TENSOR_SERVICE_RENDEZVOUS_SERVICE_H_

#include <memory>

#include "grpcpp/impl/codegen/service_type.h"
#include "tensor_service/device_tensors.h"
#include "tensor_service/rendezvous.h"

namespace penstock::tensor {

// Makes a service, which the caller registers with a ServerBuilder. For tensors
// above 4 MiB, pass the builder to AllowUnlimitedMessages(). `rendezvous` must
// outlive the gRPC server.
//
// By CancelStep or FinishStep, a client can end only steps in which it has sent
// or received a tensor, or waits for one (StepMembers). This process can end
// any step by calling the Rendezvous.
//
// A waiting receive blocks no thread. The wait ends when the call ends: when
// the caller cancels the call or dies, and at the call's deadline.
//
// Server::Shutdown() waits for all calls, including waiting receives. Before
// it, call Rendezvous::CancelAll() with the status for these calls:
//
//   rendezvous.CancelAll(absl::UnavailableError("the server shuts down"));
//   server->Shutdown();
//
// With DeviceTensors::kKeep, tensors that a peer sends from a device stay on
// that device, like those of MakeTensorService().
std::unique_ptr<grpc::Service> MakeRendezvousService(
    Rendezvous* rendezvous,
    DeviceTensors device_tensors = DeviceTensors::kToHost);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_RENDEZVOUS_SERVICE_H_
