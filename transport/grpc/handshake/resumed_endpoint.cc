#include "transport/grpc/handshake/resumed_endpoint.h"

#include <algorithm>

#include "src/core/lib/iomgr/exec_ctx.h"
#include "src/core/lib/slice/slice_internal.h"
#include "src/core/lib/slice/slice_refcount.h"
#include "transport/wire/http2_settings.h"
#include "transport/wire/settings_ack_filter.h"

namespace penstock {
namespace core {
namespace {

struct ResumedEndpoint {
  grpc_endpoint base;
  grpc_endpoint* inner;
  size_t preface_left = wire::kHttp2PrefaceBytes;
  wire::SettingsAckFilter filter;
  // The read in flight. Set only until the acknowledgement has been removed.
  grpc_slice_buffer* read_slices = nullptr;
  grpc_closure* read_done = nullptr;
  grpc_closure filter_read;
};

ResumedEndpoint* Self(grpc_endpoint* endpoint) {
  return reinterpret_cast<ResumedEndpoint*>(endpoint);
}

grpc_endpoint* Inner(grpc_endpoint* endpoint) { return Self(endpoint)->inner; }

void FilterRead(void* arg, grpc_error_handle error) {
  auto* self = static_cast<ResumedEndpoint*>(arg);
  std::string passed;
  for (size_t i = 0; i < self->read_slices->count; ++i) {
    passed += self->filter.Pass(
        grpc_core::StringViewFromSlice(self->read_slices->slices[i]));
  }
  grpc_slice_buffer_reset_and_unref(self->read_slices);
  grpc_slice_buffer_add(self->read_slices,
                        grpc_slice_from_cpp_string(std::move(passed)));
  grpc_core::ExecCtx::Run(DEBUG_LOCATION, self->read_done, error);
}

void Read(grpc_endpoint* endpoint, grpc_slice_buffer* slices,
          grpc_closure* done, bool urgent, int min_progress_size) {
  ResumedEndpoint* self = Self(endpoint);
  if (!self->filter.done()) {
    self->read_slices = slices;
    self->read_done = done;
    GRPC_CLOSURE_INIT(&self->filter_read, FilterRead, self, nullptr);
    done = &self->filter_read;
  }
  grpc_endpoint_read(self->inner, slices, done, urgent, min_progress_size);
}

void Write(grpc_endpoint* endpoint, grpc_slice_buffer* slices,
           grpc_closure* done, void* arg, int max_frame_size) {
  ResumedEndpoint* self = Self(endpoint);
  const size_t drop = std::min(self->preface_left, slices->length);
  if (drop > 0) {
    char preface[wire::kHttp2PrefaceBytes];
    grpc_slice_buffer_move_first_into_buffer(slices, drop, preface);
    self->preface_left -= drop;
  }
  grpc_endpoint_write(self->inner, slices, done, arg, max_frame_size);
}

void AddToPollset(grpc_endpoint* endpoint, grpc_pollset* pollset) {
  grpc_endpoint_add_to_pollset(Inner(endpoint), pollset);
}

void AddToPollsetSet(grpc_endpoint* endpoint, grpc_pollset_set* set) {
  grpc_endpoint_add_to_pollset_set(Inner(endpoint), set);
}

void DeleteFromPollsetSet(grpc_endpoint* endpoint, grpc_pollset_set* set) {
  grpc_endpoint_delete_from_pollset_set(Inner(endpoint), set);
}

void Shutdown(grpc_endpoint* endpoint, grpc_error_handle why) {
  grpc_endpoint_shutdown(Inner(endpoint), why);
}

void Destroy(grpc_endpoint* endpoint) {
  grpc_endpoint_destroy(Inner(endpoint));
  delete Self(endpoint);
}

absl::string_view GetPeer(grpc_endpoint* endpoint) {
  return grpc_endpoint_get_peer(Inner(endpoint));
}

absl::string_view GetLocalAddress(grpc_endpoint* endpoint) {
  return grpc_endpoint_get_local_address(Inner(endpoint));
}

int GetFd(grpc_endpoint* endpoint) {
  return grpc_endpoint_get_fd(Inner(endpoint));
}

bool CanTrackErr(grpc_endpoint* endpoint) {
  return grpc_endpoint_can_track_err(Inner(endpoint));
}

constexpr grpc_endpoint_vtable kVtable = {
    Read,       Write,   AddToPollset, AddToPollsetSet, DeleteFromPollsetSet,
    Shutdown,   Destroy, GetPeer,      GetLocalAddress, GetFd,
    CanTrackErr};

}  // namespace

grpc_endpoint* NewResumedEndpoint(grpc_endpoint* inner,
                                  absl::string_view received,
                                  std::string* rest) {
  auto* endpoint = new ResumedEndpoint();
  endpoint->base.vtable = &kVtable;
  endpoint->inner = inner;
  *rest = endpoint->filter.Pass(received);
  return &endpoint->base;
}

}  // namespace core
}  // namespace penstock
