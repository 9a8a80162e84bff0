// Joins a server on this host as its only worker.

#ifndef PENSTOCK_TESTS_PS_ONLY_WORKER_H_
#define PENSTOCK_TESTS_PS_ONLY_WORKER_H_

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "ps/client/define.h"
#include "ps/client/worker.h"
#include "tensor_service/status.h"

namespace penstock::ps {

struct OnlyWorker {
  std::shared_ptr<grpc::Channel> channel;
  Defined defined;
  std::unique_ptr<Worker> worker;
};

// Defines `model` at the server that listens at `port`, and joins its training.
// Overwrites options.connection.
inline absl::StatusOr<OnlyWorker> JoinAlone(absl::string_view port, Model model,
                                            Worker::Options options = {}) {
  const auto address = absl::StrCat("127.0.0.1:", port);
  const auto channel = grpc::CreateCustomChannel(
      address, grpc::InsecureChannelCredentials(), tensor::UnlimitedMessages());
  Definition definition;
  definition.addresses = {address};
  definition.servers = {channel};
  definition.model = std::move(model);
  auto defined = Define(definition);
  if (!defined.ok()) return defined.status();
  options.connection = defined->connection;
  auto worker = Worker::Join(std::move(options));
  if (!worker.ok()) return worker.status();
  return OnlyWorker{channel, *std::move(defined), *std::move(worker)};
}

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_ONLY_WORKER_H_
