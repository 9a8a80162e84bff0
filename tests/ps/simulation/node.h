// One simulated process of a parameter server.

#ifndef PENSTOCK_TESTS_PS_SIMULATION_NODE_H_
#define PENSTOCK_TESTS_PS_SIMULATION_NODE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/server.h"
#include "ps/server/checkpoint_writer.h"
#include "ps/server/server.h"
#include "tests/ps/simulation/folder.h"
#include "tests/ps/simulation/mail.h"

namespace penstock::ps {

// A server with service and checkpoints like ps_server, but in this process and
// without sockets. Use a node on one thread.
class Node {
 public:
  struct Options {
    uint64_t id = 0;  // unique
    std::shared_ptr<Folder> folder;
    bool restores = false;  // --restore=newest
    uint32_t workers = 1;
    size_t max_held_bytes = 0;
  };

  Node(const Options& options, Mail* mail);
  // Ends the simulated process like kill -9: no later operation changes the
  // folder, and clients get no answers. Blocks until the threads have ended.
  ~Node();

  // Delivers a letter to the server. The answer goes to the mail.
  void Take(const LetterPtr& letter);

  // Makes the process die after `operations` more operations on its files; -1
  // means never.
  void DieAfter(int operations) { files_.DieAfter(operations); }
  bool is_dying() const { return files_.is_dead(); }

  const Options& options() const { return options_; }
  Server& core() { return *core_; }

 private:
  struct Call {
    grpc::ClientContext context;
    grpc::ByteBuffer request;
    grpc::ByteBuffer reply;
  };

  bool HasAnsweredAll() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return under_way_ == 0;
  }

  const Options options_;
  Mail* const mail_;
  ProcessFiles files_;
  std::unique_ptr<Server> core_;
  std::unique_ptr<CheckpointWriter> writer_;
  std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::GenericStub> stub_;
  std::vector<std::shared_ptr<Call>> calls_;

  absl::Mutex mu_;
  size_t under_way_ ABSL_GUARDED_BY(mu_) = 0;
  bool is_dead_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_SIMULATION_NODE_H_
