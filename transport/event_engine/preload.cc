// Implements transport/preload.h for gRPC 1.60 and later.

#include "transport/preload.h"

#include <grpc/grpc.h>
#include <grpc/slice.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "grpc/impl/channel_arg_names.h"
#include "transport/event_engine/engine.h"
#include "transport/event_engine/usable_settings.h"
#include "transport/pool.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace event_engine {
namespace {

std::atomic<bool> ports_are_refused{false};

grpc_arg Integer(const char* key, int value) {
  grpc_arg argument;
  argument.type = GRPC_ARG_INTEGER;
  argument.key = const_cast<char*>(key);
  argument.value.integer = value;
  return argument;
}

// A program's arguments, with those of Penstock. The last argument with a key
// wins.
class Arguments {
 public:
  Arguments(const grpc_channel_args* given, const Settings& settings) {
    all_.push_back(Integer(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kMaxFrameBytes));
    for (size_t i = 0; given != nullptr && i < given->num_args; ++i) {
      all_.push_back(given->args[i]);
    }
    all_.push_back(Integer(kSettingsArgument, InternSettings(settings)));
    arguments_ = {all_.size(), all_.data()};
  }
  const grpc_channel_args* get() const { return &arguments_; }

 private:
  std::vector<grpc_arg> all_;
  grpc_channel_args arguments_;
};

grpc_channel* CreateChannel(PenstockCreateChannel create, const char* target,
                            grpc_channel_credentials* credentials,
                            const grpc_channel_args* arguments) {
  const absl::StatusOr<Settings> settings = UsableSettings(Options());
  if (!settings.ok() && Requires(Options())) {
    return grpc_lame_client_channel_create(
        target, GRPC_STATUS_FAILED_PRECONDITION,
        absl::StrCat("Penstock is required but not used: ",
                     settings.status().message())
            .c_str());
  }
  if (!settings.ok() || settings->policy == Policy::kOff) {
    return create(target, credentials, arguments);
  }
  return create(target, credentials, Arguments(arguments, *settings).get());
}

grpc_server* CreateServer(PenstockCreateServer create,
                          const grpc_channel_args* arguments) {
  const absl::StatusOr<Settings> settings = UsableSettings(Options());
  if (!settings.ok() && Requires(Options())) ports_are_refused = true;
  if (!settings.ok() || settings->policy == Policy::kOff) {
    return create(arguments, /*reserved=*/nullptr);
  }
  return create(Arguments(arguments, *settings).get(), /*reserved=*/nullptr);
}

int RefusesPorts() { return ports_are_refused; }

void DropBlock(void* block) {
  delete static_cast<std::shared_ptr<uint8_t>*>(block);
}

int CopyToSlice(const char* source, size_t length, grpc_slice* slice) {
  if (length < PENSTOCK_PRELOAD_COPIED_BYTES) return 0;
  auto block =
      std::make_unique<std::shared_ptr<uint8_t>>(AllocateFromPool(length));
  if (*block == nullptr) return 0;
  uint8_t* const data = block->get();
  std::memcpy(data, source, length);
  *slice =
      grpc_slice_new_with_user_data(data, length, &DropBlock, block.release());
  return 1;
}

constexpr PenstockPreload kPreload = {CreateChannel, CreateServer, RefusesPorts,
                                      CopyToSlice};

}  // namespace
}  // namespace event_engine
}  // namespace penstock

const PenstockPreload* penstock_preload_1() {
  return &penstock::event_engine::kPreload;
}
