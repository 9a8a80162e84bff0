#include "transport/grpc/handshake/negotiator.h"

#include <grpc/support/alloc.h>

#include <climits>
#include <memory>
#include <utility>

#include "src/core/lib/iomgr/exec_ctx.h"
#include "src/core/lib/iomgr/tcp_posix.h"
#include "transport/paths/path_relief.h"

namespace penstock {
namespace core {
namespace {

void Forward(void* outer, grpc_error_handle error) {
  grpc_core::ExecCtx::Run(DEBUG_LOCATION, static_cast<grpc_closure*>(outer),
                          error);
}

void DestroyReadBuffer(grpc_core::HandshakerArgs* args) {
  if (args->read_buffer == nullptr) return;
  grpc_slice_buffer_destroy(args->read_buffer);
  gpr_free(args->read_buffer);
  args->read_buffer = nullptr;
}

}  // namespace

Negotiator::Negotiator() {
  GRPC_CLOSURE_INIT(&read_outer_, OnRead, this, nullptr);
  GRPC_CLOSURE_INIT(&write_outer_, OnWritten, this, nullptr);
  GRPC_CLOSURE_INIT(&read_inner_, Forward, &read_outer_, nullptr);
  GRPC_CLOSURE_INIT(&write_inner_, Forward, &write_outer_, nullptr);
}

void Negotiator::Shutdown(grpc_error_handle why) {
  Transport* transport = nullptr;
  {
    grpc_core::MutexLock lock(&mu_);
    if (shut_down_) return;
    shut_down_ = true;
    shutdown_error_ = why;
    if (finished()) return;
    if (args_->endpoint != nullptr) {
      grpc_endpoint_shutdown(args_->endpoint, why);
    } else if (transport_ != nullptr) {
      transport = transport_;
      transport->Ref();
    }
  }
  if (transport == nullptr) return;
  transport->Close(absl::UnavailableError("the connection attempt was ended"));
  transport->Unref();
}

void Negotiator::DoHandshake(grpc_tcp_server_acceptor*, grpc_closure* done,
                             grpc_core::HandshakerArgs* args) {
  paths::PathRelief::Get()->OnConnection();
  grpc_core::MutexLock lock(&mu_);
  args_ = args;
  done_ = done;
  for (size_t i = 0; i < args->read_buffer->count; ++i) {
    received_.append(std::string(
        grpc_core::StringViewFromSlice(args->read_buffer->slices[i])));
  }
  grpc_slice_buffer_reset_and_unref(args->read_buffer);
  BeginLocked();
}

void Negotiator::ReadLocked() {
  Ref().release();
  grpc_endpoint_read(args_->endpoint, args_->read_buffer, &read_inner_,
                     /*urgent=*/true, /*min_progress_size=*/1);
}

void Negotiator::WriteLocked(const std::string& bytes) {
  Ref().release();
  write_buffer_.Append(grpc_core::Slice::FromCopiedString(bytes));
  grpc_endpoint_write(args_->endpoint, write_buffer_.c_slice_buffer(),
                      &write_inner_, nullptr, INT_MAX);
}

void Negotiator::OnRead(void* self, grpc_error_handle error) {
  static_cast<Negotiator*>(self)->OnIo(std::move(error), true);
}

void Negotiator::OnWritten(void* self, grpc_error_handle error) {
  static_cast<Negotiator*>(self)->OnIo(std::move(error), false);
}

void Negotiator::OnIo(grpc_error_handle error, bool read) {
  {
    grpc_core::MutexLock lock(&mu_);
    if (shut_down_) error = shutdown_error_;
    if (!error.ok()) {
      FinishLocked(error);
    } else if (read) {
      for (size_t i = 0; i < args_->read_buffer->count; ++i) {
        received_.append(std::string(
            grpc_core::StringViewFromSlice(args_->read_buffer->slices[i])));
      }
      grpc_slice_buffer_reset_and_unref(args_->read_buffer);
      OnReadLocked();
    } else {
      OnWrittenLocked();
    }
  }
  Unref();
}

void Negotiator::LeaveToHttp2Locked(const std::string& received) {
  if (!received.empty()) {
    grpc_slice_buffer_add(args_->read_buffer,
                          grpc_slice_from_cpp_string(received));
  }
  FinishLocked(absl::OkStatus());
}

Transport* Negotiator::TakeOverLocked(const Transport::Config& config,
                                      size_t consumed,
                                      Transport::Settled settled) {
  grpc_core::SliceBuffer rest;
  if (received_.size() > consumed) {
    rest.Append(grpc_core::Slice::FromCopiedString(received_.substr(consumed)));
  }
  transport_ = Transport::Create(config, args_->endpoint, std::move(rest),
                                 std::move(settled));
  transport_->Ref();
  args_->endpoint = nullptr;
  DestroyReadBuffer(args_);
  return transport_;
}

void Negotiator::GiveSocketLocked(std::function<void(base::UniqueFd)> taker) {
  struct Release {
    int fd = -1;
    std::function<void(base::UniqueFd)> taker;
    grpc_closure done;
  };
  auto* const release = new Release;
  release->taker = std::move(taker);
  GRPC_CLOSURE_INIT(
      &release->done,
      [](void* self, grpc_error_handle) {
        const std::unique_ptr<Release> owned(static_cast<Release*>(self));
        owned->taker(base::UniqueFd(owned->fd));
      },
      release, nullptr);
  grpc_tcp_destroy_and_release_fd(std::exchange(args_->endpoint, nullptr),
                                  &release->fd, &release->done);
  DestroyReadBuffer(args_);
  FinishLocked(absl::OkStatus());
}

void Negotiator::FinishLocked(grpc_error_handle error) {
  if (finished()) return;
  if (!error.ok()) {
    if (args_->endpoint != nullptr) {
      grpc_endpoint_shutdown(args_->endpoint, error);
      grpc_endpoint_destroy(args_->endpoint);
      args_->endpoint = nullptr;
    }
    DestroyReadBuffer(args_);
    args_->args = grpc_core::ChannelArgs();
  }
  if (transport_ != nullptr) std::exchange(transport_, nullptr)->Unref();
  grpc_core::ExecCtx::Run(DEBUG_LOCATION, std::exchange(done_, nullptr),
                          std::move(error));
}

}  // namespace core
}  // namespace penstock
