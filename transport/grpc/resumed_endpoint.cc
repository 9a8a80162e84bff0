#include "transport/grpc/resumed_endpoint.h"

#include <algorithm>

#include "src/core/lib/slice/slice_refcount.h"
#include "transport/wire/http2_settings.h"

namespace penstock {
namespace core {
namespace {

struct ResumedEndpoint {
  grpc_endpoint base;
  grpc_endpoint* inner;
  size_t preface_left = wire::kHttp2PrefaceBytes;
};

ResumedEndpoint* Self(grpc_endpoint* endpoint) {
  return reinterpret_cast<ResumedEndpoint*>(endpoint);
}

grpc_endpoint* Inner(grpc_endpoint* endpoint) { return Self(endpoint)->inner; }

void Read(grpc_endpoint* endpoint, grpc_slice_buffer* slices,
          grpc_closure* done, bool urgent, int min_progress_size) {
  grpc_endpoint_read(Inner(endpoint), slices, done, urgent, min_progress_size);
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

grpc_endpoint* NewResumedEndpoint(grpc_endpoint* inner) {
  auto* endpoint = new ResumedEndpoint();
  endpoint->base.vtable = &kVtable;
  endpoint->inner = inner;
  return &endpoint->base;
}

}  // namespace core
}  // namespace penstock
