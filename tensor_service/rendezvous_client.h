// A client of the TensorRendezvous service.

#ifndef PENSTOCK_TENSOR_SERVICE_RENDEZVOUS_CLIENT_H_
#define PENSTOCK_TENSOR_SERVICE_RENDEZVOUS_CLIENT_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "tensor_service/calls.h"
#include "tensor_service/destination.h"
#include "tensor_service/device_tensors.h"
#include "tensor_service/rendezvous.h"
#include "tensor_service/rendezvous_key.h"
#include "tensor_service/tensor.h"

namespace penstock::tensor {

// A receive that was started with a callback. Handles may be copied, and may be
// dropped before the receive has ended. Thread-safe.
class PendingReceive {
 public:
  // Ends the receive with CANCELLED, if it is still waiting.
  void Cancel();

 private:
  friend class RendezvousClient;
  struct Call;
  explicit PendingReceive(std::shared_ptr<Call> call);

  std::shared_ptr<Call> call_;
};

// A client of a TensorRendezvous service; class Rendezvous documents the
// semantics. Sends tensors of kCopyBelowBytes and more from the caller's
// memory. Over shared memory, the service stores such a tensor in that same
// memory, and receivers use it there. Therefore change the memory only through
// a Tensor, which copies first. Received tensors share the memory of the
// message.
//
// Each call ends with DEADLINE_EXCEEDED after the timeout, which includes the
// wait for a connection. Errors have the service's code and name the method and
// the peer.
//
// Thread-safe. Calls of several threads run in parallel.
class RendezvousClient {
 public:
  using Received = Rendezvous::Received;
  using SendOptions = Rendezvous::SendOptions;

  // Makes a client. For tensors above 4 MiB, make `channel` with
  // UnlimitedMessages().
  explicit RendezvousClient(std::shared_ptr<grpc::Channel> channel,
                            absl::Duration timeout = absl::Seconds(60));

  // Blocks until the service has the tensor. Does not wait for receivers.
  absl::Status Send(const RendezvousKey& key, const Tensor& tensor,
                    const SendOptions& options = SendOptions());

  // Blocks until the tensor arrives. Receives the tensor into `destination`,
  // unless that is null; ignores the destination's name. `device_tensors` is as
  // for TensorClient::Get().
  absl::StatusOr<Received> Receive(
      const RendezvousKey& key, Destination* destination = nullptr,
      DeviceTensors device_tensors = DeviceTensors::kToHost);

  // Calls `callback` exactly once, when the tensor arrives or the receive
  // fails. The callback runs on one of gRPC's threads, possibly before
  // Receive() returns, and must not block. The wait occupies no thread. The
  // tensor is on the host.
  PendingReceive Receive(const RendezvousKey& key,
                         Rendezvous::Callback callback);

  // Sends a tensor, then blocks until the tensor of `receive` arrives, in one
  // call. Otherwise like Receive().
  absl::StatusOr<Received> Exchange(
      const RendezvousKey& send, const Tensor& tensor,
      const SendOptions& options, const RendezvousKey& receive,
      Destination* destination = nullptr,
      DeviceTensors device_tensors = DeviceTensors::kToHost);

  // Return PERMISSION_DENIED unless this process takes part in the step: any
  // RendezvousClient of the process has sent or received a tensor in the step,
  // or waits for one.
  absl::Status CancelStep(uint64_t step, const absl::Status& reason);
  absl::Status FinishStep(uint64_t step);

 private:
  absl::StatusOr<grpc::ByteBuffer> Call(CallQueue* queue, const char* method,
                                        const grpc::ByteBuffer& request,
                                        absl::Duration timeout);
  absl::StatusOr<Received> CallInto(CallQueue* queue, const char* method,
                                    const grpc::ByteBuffer& request,
                                    absl::Duration timeout,
                                    Destination* destination,
                                    DeviceTensors device_tensors);

  const std::shared_ptr<grpc::Channel> channel_;
  const absl::Duration timeout_;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_RENDEZVOUS_CLIENT_H_
