// A client that several Python threads share, and that one of them may close.

#ifndef PENSTOCK_PYTHON_OWNED_H_
#define PENSTOCK_PYTHON_OWNED_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "python/maker.h"

namespace penstock::python {

// An owner of the client, which the threads share. Thread-safe. Call all
// functions Unlocked.
template <typename Client>
class Owned {
 public:
  // Takes ownership of the client. `name` names the client in messages.
  Owned(std::string name, std::unique_ptr<Client> client)
      : name_(std::move(name)), client_(std::move(client)) {}
  // Leaks the client in a forked child, which lacks the client's threads.
  ~Owned() {
    if (maker_.IsParent()) (void)client_.release();
  }

  // Share() calls `use(client)` in parallel with other Share() calls. Alone()
  // calls it exclusively. Both return FAILED_PRECONDITION, with the remedy, if
  // the client was closed or belongs to a parent process.
  template <typename Use>
  absl::Status Share(const Use& use) ABSL_LOCKS_EXCLUDED(mu_) {
    if (maker_.IsParent()) return maker_.Refuse(name_);
    absl::ReaderMutexLock lock(&mu_);
    if (client_ == nullptr) return Closed();
    use(*client_);
    return absl::OkStatus();
  }
  template <typename Use>
  absl::Status Alone(const Use& use) ABSL_LOCKS_EXCLUDED(mu_) {
    if (maker_.IsParent()) return maker_.Refuse(name_);
    absl::MutexLock lock(&mu_);
    if (client_ == nullptr) return Closed();
    use(*client_);
    return absl::OkStatus();
  }

  // Closes this object and returns the client. Returns null if the object was
  // already closed or belongs to a parent process.
  std::unique_ptr<Client> Take() ABSL_LOCKS_EXCLUDED(mu_) {
    if (maker_.IsParent()) return nullptr;
    absl::MutexLock lock(&mu_);
    return std::move(client_);
  }

 private:
  absl::Status Closed() const {
    return absl::FailedPreconditionError(
        absl::StrCat(name_, ": it is closed; make another one"));
  }

  const std::string name_;
  const Maker maker_;
  absl::Mutex mu_;
  std::unique_ptr<Client> client_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_OWNED_H_
