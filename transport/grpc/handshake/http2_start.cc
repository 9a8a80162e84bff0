#include "transport/grpc/handshake/http2_start.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/core/ext/transport/chttp2/transport/chttp2_transport.h"
#include "src/core/lib/gprpp/status_helper.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "transport/grpc/grpc_executor.h"

namespace penstock {
namespace core {

namespace {

// Returns the root cause of `error`. For example, a web server causes "Trying
// to connect an http1.x server". The outermost text is always "Failed parsing
// HTTP/2".
grpc_error_handle CauseOf(grpc_error_handle error) {
  for (;;) {
    const std::vector<absl::Status> causes =
        grpc_core::StatusGetChildren(error);
    if (causes.empty()) return error;
    error = causes.back();
  }
}

}  // namespace

Http2Start::Http2Start(grpc_core::HandshakerArgs* args,
                       const grpc_core::SubchannelConnector::Args& connect,
                       Done done)
    : endpoint_(args->endpoint),
      interested_parties_(connect.interested_parties),
      transport_(grpc_create_chttp2_transport(args->args, args->endpoint,
                                              /*is_client=*/true)),
      done_(std::move(done)) {
  GRPC_CLOSURE_INIT(&on_settings_, OnSettings, this, nullptr);
}

grpc_core::RefCountedPtr<Http2Start> Http2Start::Begin(
    grpc_core::HandshakerArgs* args,
    const grpc_core::SubchannelConnector::Args& connect, Done done) {
  grpc_core::RefCountedPtr<Http2Start> start(
      new Http2Start(args, connect, std::move(done)));
  grpc_core::MutexLock lock(&start->mu_);
  start->Ref().release();  // released by OnTimer()
  Http2Start* const self = start.get();
  const grpc_core::Duration left =
      connect.deadline - grpc_core::ExecCtx::Get()->Now();
  start->timer_ =
      GrpcExecutor()->RunAfter(absl::Milliseconds(left.millis()),
                               [self](bool is_due) { self->OnTimer(is_due); });
  start->Ref().release();  // released by OnSettings()
  grpc_chttp2_transport_start_reading(start->transport_, args->read_buffer,
                                      &start->on_settings_, nullptr);
  return start;
}

void Http2Start::Shutdown(const grpc_error_handle& why) {
  grpc_core::MutexLock lock(&mu_);
  FinishLocked(why);
}

// Ends the attempt with success or `error`. Also called when the transport ends
// before the SETTINGS arrive.
void Http2Start::OnSettings(void* arg, grpc_error_handle error) {
  auto* self = static_cast<Http2Start*>(arg);
  {
    grpc_core::MutexLock lock(&self->mu_);
    self->FinishLocked(error.ok() ? error
                                  : GRPC_ERROR_CREATE(absl::StrCat(
                                        "the peer sent no SETTINGS of HTTP/2: ",
                                        CauseOf(error).message())));
  }
  self->Unref();
}

void Http2Start::OnTimer(bool is_due) {
  {
    grpc_core::MutexLock lock(&mu_);
    timer_ = 0;
    if (is_due) {
      FinishLocked(GRPC_ERROR_CREATE(
          "connection attempt timed out before receiving SETTINGS frame"));
    }
  }
  Unref();
}

void Http2Start::FinishLocked(const grpc_error_handle& error) {
  if (transport_ == nullptr) return;
  if (timer_ != 0) GrpcExecutor()->Cancel(timer_);
  grpc_transport* const transport = std::exchange(transport_, nullptr);
  grpc_endpoint_delete_from_pollset_set(endpoint_, interested_parties_);
  if (!error.ok()) grpc_transport_destroy(transport);
  auto* done = new Done(std::move(done_));
  grpc_core::ExecCtx::Run(
      DEBUG_LOCATION,
      grpc_core::NewClosure([done, transport, error](grpc_error_handle) {
        if (error.ok()) {
          (*done)(transport);
        } else {
          (*done)(error);
        }
        delete done;
      }),
      absl::OkStatus());
}

}  // namespace core
}  // namespace penstock
