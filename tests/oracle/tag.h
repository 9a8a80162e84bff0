// One outstanding operation, which one waiter can wait for. Reusable.

#ifndef PENSTOCK_TESTS_ORACLE_TAG_H_
#define PENSTOCK_TESTS_ORACLE_TAG_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "grpcpp/completion_queue.h"

namespace penstock::oracle {

// A completion-queue tag. Reusable, by one waiter.
class Tag {
 public:
  virtual ~Tag() = default;
  // Records that the operation has ended, successfully or not.
  virtual void Set(bool ok) {
    std::lock_guard<std::mutex> lock(mu_);
    done_ = true;
    ok_ = ok;
    changed_.notify_one();
  }
  // Waits for the operation. Returns true if it succeeded, and resets the tag.
  bool Await() {
    std::unique_lock<std::mutex> lock(mu_);
    changed_.wait(lock, [this] { return done_; });
    done_ = false;
    return ok_;
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  bool done_ = false;
  bool ok_ = false;
};

// A thread that takes tags from a queue. `Queue` is one of gRPC's two kinds.
template <typename Queue>
class Pump {
 public:
  explicit Pump(std::unique_ptr<Queue> queue) : queue_(std::move(queue)) {
    thread_ = std::thread([this] {
      void* tag = nullptr;
      bool ok = false;
      while (queue_->Next(&tag, &ok)) static_cast<Tag*>(tag)->Set(ok);
    });
  }
  // Waits for the thread. All operations must have ended.
  ~Pump() { Stop(); }
  void Stop() {
    if (!thread_.joinable()) return;
    queue_->Shutdown();
    thread_.join();
  }
  Queue* queue() { return queue_.get(); }

 private:
  std::unique_ptr<Queue> queue_;
  std::thread thread_;
};

using ClientPump = Pump<grpc::CompletionQueue>;
using ServerPump = Pump<grpc::ServerCompletionQueue>;

}  // namespace penstock::oracle

#endif  // PENSTOCK_TESTS_ORACLE_TAG_H_
