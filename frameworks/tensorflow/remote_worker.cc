#include "frameworks/tensorflow/remote_worker.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "frameworks/tensorflow/proto_message.h"
#include "frameworks/tensorflow/run_on_pool.h"
#include "frameworks/tensorflow/tensor_message.h"
#include "frameworks/tensorflow/worker.h"
#include "tensorflow/core/platform/env.h"

namespace penstock {
namespace tensorflow {
namespace {

using ::tensorflow::CallOptions;
using ::tensorflow::RecvBufRequest;
using ::tensorflow::RecvBufResponse;
using ::tensorflow::RecvTensorRequest;
using ::tensorflow::StatusCallback;
using ::tensorflow::TensorResponse;
using Answer = absl::StatusOr<rpc::Response>;

// Copies the payload, and frees it before calling `done`.
void CopyBuffer(rpc::Response response, const RecvBufRequest* request,
                Route* route, const StatusCallback& done) {
  if (response.payload.size() != static_cast<uint64_t>(request->num_bytes())) {
    return done(absl::InternalError(
        "a peer's buffer does not have the size that the collective needs"));
  }
  response.payload.CopyTo(
      reinterpret_cast<uint8_t*>(static_cast<uintptr_t>(request->buf_ptr())));
  response.payload = memory::Payload();
  if (response.metadata == kWaits) route->Nudge();
  // Ends the call. TensorFlow treats a response without transport options as
  // complete.
  done(absl::OkStatus());
}

// Adds the peer's name to an error, as stock RPCs do. ClusterCoordinator finds
// out from this text whether a parameter server or a worker was lost.
absl::Status NamingPeer(const absl::Status& status, const std::string& task,
                        absl::string_view method) {
  if (!absl::IsUnavailable(status)) return status;
  absl::Status naming(
      status.code(),
      absl::StrCat(status.message(),
                   "\nAdditional GRPC error information from remote target ",
                   task, " while calling /tensorflow.WorkerService/", method,
                   " over Penstock"));
  status.ForEachPayload(
      [&naming](absl::string_view url, const absl::Cord& value) {
        naming.SetPayload(url, value);
      });
  return naming;
}

// Starts a stock RPC. Afterwards cancels the RPC if its call was cancelled
// before the RPC registered for cancellation. TensorFlow's rendezvous does not
// ensure this: it checks for a cancellation before it calls this function.
void BeginStock(CallOptions* options, const Route::Cancelled& cancelled,
                const StatusCallback& done,
                const std::function<void(StatusCallback)>& begin) {
  // Joins two events: the end of the RPC, which may happen within `begin`, and
  // the check for a cancellation. The later event calls `done`, because
  // `options` may be destroyed once `done` is called.
  struct Meeting {
    std::atomic<bool> has_first{false};
    absl::Status status;
  };
  auto meeting = std::make_shared<Meeting>();
  begin([meeting, done](const absl::Status& status) {
    meeting->status = status;
    if (meeting->has_first.exchange(true)) done(status);
  });
  if (options != nullptr && *cancelled) options->StartCancel();
  if (meeting->has_first.exchange(true)) done(meeting->status);
}

// Returns the timeout of a call. 0 means no timeout, as for stock RPCs.
absl::Duration TimeoutOf(CallOptions* options) {
  const int64_t ms = options == nullptr ? 0 : options->GetTimeout();
  return ms > 0 ? absl::Milliseconds(ms) : absl::InfiniteDuration();
}

}  // namespace

void RemoteWorker::RecvTensorAsync(CallOptions* options,
                                   const RecvTensorRequest* request,
                                   TensorResponse* response,
                                   StatusCallback done) {
  Route::Call call;
  call.worker = stock_.get();
  call.options = options;
  call.request.method = kRecvTensor;
  call.request.metadata = request->SerializeAsString();
  call.stock = [stock = stock_.get(), options, request, response,
                done](const Route::Cancelled& cancelled) {
    BeginStock(options, cancelled, done, [&](StatusCallback looked) {
      stock->RecvTensorAsync(options, request, response, std::move(looked));
    });
  };
  call.answered = [response, task = task_, done](Answer answer) {
    if (!answer.ok()) {
      return done(NamingPeer(answer.status(), task, kRecvTensor));
    }
    const size_t work = DecodingWork(*answer);
    RunHereOrOnPool(work, [answer = *std::move(answer), response, done] {
      done(DecodeTensor(answer, response));
    });
  };
  route_->Start(std::move(call));
}

void RemoteWorker::RecvBufAsync(CallOptions* options,
                                const RecvBufRequest* request,
                                RecvBufResponse* response,
                                StatusCallback done) {
  Route::Call call;
  call.worker = stock_.get();
  call.options = options;
  call.request.method = kRecvBuf;
  RecvBufRequest sent = *request;
  sent.clear_buf_ptr();  // valid only in this process
  call.request.metadata = sent.SerializeAsString();
  call.stock = [stock = stock_.get(), options, request, response,
                done](const Route::Cancelled& cancelled) {
    BeginStock(options, cancelled, done, [&](StatusCallback looked) {
      stock->RecvBufAsync(options, request, response, std::move(looked));
    });
  };
  call.answered = [request, route = route_, task = task_, done](Answer answer) {
    if (!answer.ok()) {
      return done(NamingPeer(answer.status(), task, kRecvBuf));
    }
    const size_t bytes = answer->payload.size();
    auto share = std::make_shared<rpc::Response>(*std::move(answer));
    RunHereOrOnPool(bytes, [share, request, route, done] {
      CopyBuffer(std::move(*share), request, route.get(), done);
    });
  };
  route_->Start(std::move(call));
}

void RemoteWorker::RunGraphAsync(
    CallOptions* options, ::tensorflow::RunGraphRequestWrapper* request,
    ::tensorflow::MutableRunGraphResponseWrapper* response,
    StatusCallback done) {
  Route::Call call;
  call.worker = stock_.get();
  call.options = options;
  call.request.method = kRunGraph;
  // Makes a stock call, which reports the error.
  if (!SetProto(request->ToProto(), &call.request)) {
    return stock_->RunGraphAsync(options, request, response, std::move(done));
  }
  call.request.timeout = TimeoutOf(options);
  call.stock = [stock = stock_.get(), options, request, response,
                done](const Route::Cancelled& cancelled) {
    BeginStock(options, cancelled, done, [&](StatusCallback looked) {
      stock->RunGraphAsync(options, request, response, std::move(looked));
    });
  };
  call.answered = [result = get_proto_from_wrapper(response), task = task_,
                   done](Answer answer) {
    if (!answer.ok()) {
      return done(NamingPeer(answer.status(), task, kRunGraph));
    }
    const size_t bytes = answer->payload.size();
    RunHereOrOnPool(bytes, [answer = *std::move(answer), result, done] {
      done(ParseProto(answer, result)
               ? absl::OkStatus()
               : absl::InternalError(
                     "a peer's answer to RunGraph is malformed"));
    });
  };
  route_->Start(std::move(call));
}

void RemoteWorker::Ask(rpc::Request request,
                       std::function<void(Answer)> answered) {
  Route::Call call;
  call.worker = stock_.get();
  call.request = std::move(request);
  call.stock = [answered, task = task_](const Route::Cancelled&) {
    answered(absl::FailedPreconditionError(
        absl::StrCat(task, " has no data plane of Penstock")));
  };
  call.answered = answered;
  route_->Start(std::move(call));
}

void RemoteWorker::CleanupGraphAsync(
    const ::tensorflow::CleanupGraphRequest* request,
    ::tensorflow::CleanupGraphResponse* response, StatusCallback done) {
  if (!route_->is_lost()) {
    return stock_->CleanupGraphAsync(request, response, std::move(done));
  }
  // The state of the RPC. The RPC may outlive this call if the peer has only
  // lost the connection.
  struct Cleanup {
    std::shared_ptr<::tensorflow::WorkerInterface> stock;
    ::tensorflow::CleanupGraphRequest request;
    ::tensorflow::CleanupGraphResponse response;
    std::atomic<bool> reported{false};
    StatusCallback done;

    void Report(const absl::Status& status) {
      if (!reported.exchange(true)) done(status);
    }
  };
  auto cleanup = std::make_shared<Cleanup>();
  cleanup->stock = stock_;
  cleanup->request = *request;
  cleanup->done = std::move(done);
  stock_->CleanupGraphAsync(
      &cleanup->request, &cleanup->response,
      [cleanup](const absl::Status& status) { cleanup->Report(status); });
  constexpr int64_t kMostMicros = 1000 * 1000;
  ::tensorflow::Env::Default()->SchedClosureAfter(kMostMicros, [cleanup] {
    cleanup->Report(absl::UnavailableError("the task is gone"));
  });
}

}  // namespace tensorflow
}  // namespace penstock
