// Tests the arguments of a server that is created through gRPC's core.

#include "transport/grpc/handshake/server_setup.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "transport/settings/settings.h"

namespace penstock::core {
namespace {

std::vector<const void*> marks;

// Calls grpc_server_create(), and records the pointers in our arguments.
grpc_server* Create(const grpc_channel_args* arguments, void* reserved) {
  for (size_t i = 0; arguments != nullptr && i < arguments->num_args; ++i) {
    const grpc_arg& argument = arguments->args[i];
    if (std::string(argument.key).find("penstock.") != 0) continue;
    marks.push_back(argument.value.pointer.p);
  }
  return grpc_server_create(arguments, reserved);
}

// Makes a server. The stub finds this function if a library of the program
// contains Penstock.
grpc_server* CreateAgain(const grpc_channel_args* arguments, void*) {
  return *CreateEnabledServer(&Create, arguments, Settings());
}

void Destroy(grpc_server* server) {
  grpc_completion_queue* queue =
      grpc_completion_queue_create_for_pluck(nullptr);
  grpc_server_register_completion_queue(server, queue, nullptr);
  grpc_server_shutdown_and_notify(server, queue, nullptr);
  grpc_completion_queue_pluck(queue, nullptr,
                              gpr_inf_future(GPR_CLOCK_REALTIME), nullptr);
  grpc_server_destroy(server);
  grpc_completion_queue_shutdown(queue);
  grpc_completion_queue_destroy(queue);
}

TEST(ServerSetupTest, AServerIsEnabledOnceWithTheFirstSettings) {
  grpc_init();
  for (const auto create : {&Create, &CreateAgain}) {
    marks.clear();
    Destroy(*CreateEnabledServer(create, nullptr, Settings()));
    EXPECT_EQ(marks.size(), 1U);
  }
  grpc_shutdown();
}

}  // namespace
}  // namespace penstock::core
