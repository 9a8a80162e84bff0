#include "transport/preload.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <atomic>
#include <cstring>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "transport/grpc/handshake/credentials.h"
#include "transport/grpc/handshake/server_setup.h"
#include "transport/settings/settings.h"
#include "transport/stub_memory.h"
#include "transport/usable_settings.h"

PENSTOCK_NOTE();

namespace penstock {
namespace {

std::atomic<bool> ports_are_refused{false};

grpc_channel* LameChannel(const char* target, const absl::Status& reason) {
  const std::string text =
      absl::StrCat("Penstock is required but not used: ", reason.message());
  return grpc_lame_client_channel_create(
      target, GRPC_STATUS_FAILED_PRECONDITION, text.c_str());
}

grpc_channel* CreateChannel(PenstockCreateChannel create, const char* target,
                            grpc_channel_credentials* credentials,
                            const grpc_channel_args* arguments) {
  const absl::StatusOr<Settings> settings = UsableSettings(Options());
  if (!settings.ok()) {
    return Requires(Options()) ? LameChannel(target, settings.status())
                               : create(target, credentials, arguments);
  }
  if (settings->policy == Policy::kOff || credentials == nullptr) {
    return create(target, credentials, arguments);
  }
  PrepareForChannel(*settings);
  grpc_channel_credentials* wrapped =
      core::WrapCredentials(credentials, *settings);
  grpc_channel* channel = create(target, wrapped, arguments);
  grpc_channel_credentials_release(wrapped);
  return channel;
}

grpc_server* CreateServer(PenstockCreateServer create,
                          const grpc_channel_args* arguments) {
  const absl::StatusOr<Settings> settings = UsableSettings(Options());
  absl::Status status = settings.status();
  if (status.ok() && settings->policy != Policy::kOff) {
    PrepareForServer(*settings);
    const absl::StatusOr<grpc_server*> server =
        core::CreateEnabledServer(create, arguments, *settings);
    if (server.ok()) return *server;
    status = server.status();
    SayWhyNot(status);
  }
  if (!status.ok() && Requires(Options())) ports_are_refused = true;
  return create(arguments, /*reserved=*/nullptr);
}

int RefusesPorts() { return ports_are_refused; }

static_assert(kPooledSliceBytes >= PENSTOCK_PRELOAD_COPIED_BYTES,
              "the stub does not ask for less");

int CopyToSlice(const char* source, size_t length, grpc_slice* slice) {
  absl::optional<grpc_slice> pooled = NewPooledSlice(length);
  if (!pooled.has_value()) return 0;
  std::memcpy(GRPC_SLICE_START_PTR(*pooled), source, length);
  *slice = *pooled;
  return 1;
}

constexpr PenstockPreload kPreload = {CreateChannel, CreateServer, RefusesPorts,
                                      CopyToSlice};

}  // namespace
}  // namespace penstock

const PenstockPreload* penstock_preload_1() { return &penstock::kPreload; }
