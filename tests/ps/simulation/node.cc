#include "tests/ps/simulation/node.h"

#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/server_builder.h"
#include "ps/client/training_connection.h"
#include "ps/server/checkpoint_restore.h"
#include "ps/service/service.h"
#include "tensor_service/status.h"

namespace penstock::ps {
namespace {

const auto kSilent = [](const std::string&) {};

Server::Options OptionsOf(const Node::Options& node, checkpoint::Files* files) {
  Server::Options options;
  options.membership.expected_workers = node.workers;
  // Set a lease that never ends, because real time must not affect a
  // simulation.
  options.membership.lease = absl::Hours(10);
  options.membership.assemble_timeout = absl::Hours(10);
  options.max_wait = absl::Hours(1);
  options.max_held_bytes = node.max_held_bytes;
  options.log = kSilent;
  if (node.restores) {
    RestoreOptions restore;
    restore.log = kSilent;
    options.restore = RestoreFrom(files, absl::nullopt, restore);
  }
  return options;
}

CheckpointWriter::Options WriterOptions() {
  CheckpointWriter::Options options;
  options.share = 1;  // never rests
  options.max_wait = absl::Hours(1);
  options.commits.max_depth = 3;
  options.commits.log = kSilent;
  return options;
}

}  // namespace

Node::Node(const Options& options, Mail* mail)
    : options_(options),
      mail_(mail),
      files_(options.folder),
      core_(std::make_unique<Server>(OptionsOf(options, &files_))),
      writer_(std::make_unique<CheckpointWriter>(&files_, core_.get(),
                                                 WriterOptions())),
      service_(MakeService(core_.get(), {nullptr, writer_.get()})) {
  grpc::ServerBuilder builder;
  tensor::AllowUnlimitedMessages(&builder);
  builder.RegisterService(service_.get());
  server_ = builder.BuildAndStart();
  stub_ = std::make_unique<grpc::GenericStub>(
      server_->InProcessChannel(tensor::UnlimitedMessages()));
}

Node::~Node() {
  files_.Die();
  {
    absl::MutexLock lock(&mu_);
    is_dead_ = true;
  }
  core_->Drain();
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(this, &Node::HasAnsweredAll));
  }
  stub_ = nullptr;
  server_ = nullptr;
  service_ = nullptr;
  writer_ = nullptr;
  core_ = nullptr;
}

void Node::Take(const LetterPtr& letter) {
  auto call = std::make_shared<Call>();
  call->request = letter->request;
  calls_.push_back(call);
  letter->stage = Letter::Stage::kAtServer;
  letter->node = options_.id;
  letter->cancel = [call] { call->context.TryCancel(); };
  {
    absl::MutexLock lock(&mu_);
    ++under_way_;
  }
  stub_->UnaryCall(
      &call->context, absl::StrCat(kServicePath, letter->method), {},
      &call->request, &call->reply,
      [this, letter, raw = call.get()](const grpc::Status& status) {
        absl::MutexLock lock(&mu_);
        const grpc::Status broken(grpc::StatusCode::UNAVAILABLE,
                                  "the connection broke");
        mail_->Answer(letter, is_dead_ ? broken : status, raw->reply);
        --under_way_;
      });
}

}  // namespace penstock::ps
