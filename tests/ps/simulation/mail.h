// Calls of gRPC clients as letters. The simulation delivers the letters.

#ifndef PENSTOCK_TESTS_PS_SIMULATION_MAIL_H_
#define PENSTOCK_TESTS_PS_SIMULATION_MAIL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/client_interceptor.h"
#include "grpcpp/support/status.h"
#include "ps/client/training_connection.h"

namespace penstock::ps {

// One unary call in the simulation.
//
//   stage      event            next
//   ---------  ---------------  ---------
//   sent       deliver          at server
//   at server  answer           answered
//   any        return the call  unchanged
//
// A client may get an error in every stage. If a client gets its answer
// before the server has finished, the letter becomes a ghost: a server still
// receives and answers it.
struct Letter {
  enum class Stage { kSent, kAtServer, kAnswered };

  uint64_t client = 0;
  uint64_t number = 0;  // of the client's letters
  size_t server = 0;
  std::string method;  // without the path
  grpc::ByteBuffer request;
  bool is_typed = false;  // the client expects a parsed message
  bool is_ghost = false;  // the client has an answer
  Stage stage = Stage::kSent;
  bool is_cancelled = false;  // by the client
  bool is_noted = false;      // by the simulation, once answered
  uint64_t node = 0;          // the process that got the letter
  grpc::Status status;
  grpc::ByteBuffer reply;
  std::function<void()> cancel;  // at the server
  grpc::experimental::InterceptorBatchMethods* batch = nullptr;

  // Returns a description of the letter, for people.
  std::string Text() const;
};
using LetterPtr = std::shared_ptr<Letter>;

// The letters of all clients. Clients use their channels on any thread. Only
// the simulation's thread calls the other methods. The simulation reads letters
// while all other threads wait.
class Mail {
 public:
  struct Farewell {
    uint64_t client;
    size_t server;
  };

  // Returns channels whose calls become letters. Streams of heartbeats stay
  // open. Their heartbeats reach no server, but the last heartbeat of a worker
  // that leaves becomes a Farewell.
  TrainingConnection::Channels ChannelsOf(uint64_t client, size_t servers);

  // Returns all open letters, ordered by client and number. Ghosts come last.
  std::vector<LetterPtr> Open() const;
  bool HasOpen(uint64_t client) const;
  std::vector<Farewell> TakeFarewells();

  // Stores a server's answer in the letter. Thread-safe.
  void Answer(const LetterPtr& letter, const grpc::Status& status,
              const grpc::ByteBuffer& reply);
  // Passes the stored answer to the client, and removes the letter.
  void Return(const LetterPtr& letter);
  // Passes an error to the client. The letter becomes a ghost if a server has
  // it, or if `leaves_ghost` is true. Otherwise removes the letter.
  void Fail(const LetterPtr& letter, const grpc::Status& status,
            bool leaves_ghost = false);
  // Fails all letters whose clients have cancelled the call. Returns true if
  // there was such a letter.
  bool ReturnCancelled();
  // Cancels all letters of a client, now and later.
  void Abandon(uint64_t client);
  void Drop(const LetterPtr& ghost);

 private:
  class Interceptor;
  class Factory;

  void Post(const LetterPtr& letter);
  void Remove(const LetterPtr& letter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  uint64_t numbers_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<LetterPtr> letters_ ABSL_GUARDED_BY(mu_);
  std::vector<LetterPtr> ghosts_ ABSL_GUARDED_BY(mu_);
  std::vector<Farewell> farewells_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> abandoned_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_SIMULATION_MAIL_H_
