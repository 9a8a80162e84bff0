// Tests shutdowns of the connecting side at critical moments.

#include "transport/grpc/handshake/client_negotiator.h"

#include <functional>
#include <string>
#include <thread>

#include "grpc/grpc.h"
#include "grpc/slice.h"
#include "grpc/support/alloc.h"
#include "gtest/gtest.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "test/core/util/mock_endpoint.h"
#include "transport/wire/frame.h"
#include "transport/wire/http2_settings.h"

namespace penstock {
namespace core {
namespace {

class ClientNegotiatorTest : public testing::Test {
 protected:
  ClientNegotiatorTest() {
    grpc_init();
    Settings settings;
    settings.fabrics = {Fabric::kTcp};
    negotiator_ = grpc_core::MakeRefCounted<ClientNegotiator>(settings);
  }

  ~ClientNegotiatorTest() override {
    {
      grpc_core::ExecCtx exec_ctx;
      negotiator_.reset();
    }
    grpc_shutdown();
  }

  // Negotiates with a Penstock server. Stops when the server's answer can be
  // read in the caller's ExecCtx.
  void Negotiate() {
    args_.endpoint = grpc_mock_endpoint_create([](grpc_slice) {});
    args_.read_buffer =
        static_cast<grpc_slice_buffer*>(gpr_malloc(sizeof(grpc_slice_buffer)));
    grpc_slice_buffer_init(args_.read_buffer);
    GRPC_CLOSURE_INIT(
        &done_,
        [](void* self, grpc_error_handle error) {
          static_cast<ClientNegotiatorTest*>(self)->ended_ = error;
        },
        this, nullptr);
    negotiator_->DoHandshake(nullptr, &done_, &args_);
    const std::string answer =
        wire::PenstockSettingsFrame({wire::kVersion, wire::kVersion});
    grpc_mock_endpoint_put_read(
        args_.endpoint,
        grpc_slice_from_copied_buffer(answer.data(), answer.size()));
  }

  // Runs `action` in the caller's ExecCtx: after a transport has taken over the
  // connection, and before the negotiator's own tasks.
  void RunOnceTakenOver(std::function<void()> action) {
    grpc_core::ExecCtx::Run(
        DEBUG_LOCATION,
        grpc_core::NewClosure([this, action](grpc_error_handle) {
          if (args_.endpoint != nullptr) return RunOnceTakenOver(action);
          action();
        }),
        absl::OkStatus());
  }

  grpc_core::RefCountedPtr<ClientNegotiator> negotiator_;
  grpc_core::HandshakerArgs args_;
  grpc_closure done_;
  absl::Status ended_;
};

// Destroys the channel while another thread starts the session.
TEST_F(ClientNegotiatorTest, ATransportThatIsShutDownBeforeItStartsDoesNot) {
  grpc_core::ExecCtx exec_ctx;
  Negotiate();
  RunOnceTakenOver([this] {
    std::thread([this] {
      grpc_core::ExecCtx own;
      negotiator_->Shutdown(absl::CancelledError("no longer wanted"));
    }).join();
    EXPECT_EQ(ended_.code(), absl::StatusCode::kUnknown) << ended_;
  });
  exec_ctx.Flush();
  EXPECT_FALSE(ended_.ok());
}

}  // namespace
}  // namespace core
}  // namespace penstock
