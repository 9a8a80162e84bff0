// Makes a Rendezvous the gRPC service TensorRendezvous.

#ifndef PENSTOCK_TENSOR_SERVICE_RENDEZVOUS_SERVICE_H_
#define PENSTOCK_TENSOR_SERVICE_RENDEZVOUS_SERVICE_H_

#include <memory>

#include "grpcpp/impl/codegen/service_type.h"
#include "tensor_service/device_tensors.h"
#include "tensor_service/rendezvous.h"

namespace penstock::tensor {

// Makes a service for the caller to register with a ServerBuilder. For tensors
// above 4 MiB, pass that builder to AllowUnlimitedMessages(). `rendezvous` must
// outlive the gRPC server.
//
// A client ends, by CancelStep or FinishStep, only steps in which it takes
// part: it has sent or received something there, or waits for it (StepMembers).
// Any step is ended by this process's own call of the Rendezvous.
//
// No thread is blocked by a receive that waits. Its wait ends when its call
// does: when the caller cancels it or dies, and at its deadline.
//
// Server::Shutdown() waits for the calls, and so for the waits. Before it, call
// Rendezvous::CancelAll() with a status that says why, which all of them get:
//
//   rendezvous.CancelAll(absl::UnavailableError("the server shuts down"));
//   server->Shutdown();
//
// With DeviceTensors::kKeep, tensors that a peer sends from a device are handed
// on, and kept, on that device, as MakeTensorService() has it.
std::unique_ptr<grpc::Service> MakeRendezvousService(
    Rendezvous* rendezvous,
    DeviceTensors device_tensors = DeviceTensors::kToHost);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_RENDEZVOUS_SERVICE_H_
