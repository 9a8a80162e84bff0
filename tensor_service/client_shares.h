// Limits how much of a shared resource one client may use.

#ifndef PENSTOCK_TENSOR_SERVICE_CLIENT_SHARES_H_
#define PENSTOCK_TENSOR_SERVICE_CLIENT_SHARES_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace penstock::tensor {

// Counts each client's use of a limited resource: bytes, or slots. A client may
// have at most the fraction `share` of the amount that the other clients leave.
// A client at its cap therefore leaves room for a second client, the second for
// a third, and so on. Thread-safe.
class ClientShares {
 private:
  struct Counts;

 public:
  // An amount that counts for a client until this object is destroyed, on any
  // thread. May outlive the ClientShares. Not thread-safe.
  class Hold {
   public:
    // Makes a hold of the amount 0.
    Hold() = default;
    ~Hold();
    Hold(Hold&& other) noexcept;
    Hold& operator=(Hold&& other) noexcept;

   private:
    friend class ClientShares;
    Hold(std::shared_ptr<Counts> counts, std::string client, size_t amount);

    std::shared_ptr<Counts> counts_;
    std::string client_;
    size_t amount_ = 0;
  };

  // Makes the counts for a resource of `limit`. Requires 0 < share <= 1. With a
  // share of 1, a single client may use the whole resource.
  ClientShares(size_t limit, double share);
  ClientShares(const ClientShares&) = delete;
  ClientShares& operator=(const ClientShares&) = delete;

  // Counts `amount` for `client`. The empty name stands for the program itself,
  // which is neither counted nor limited. Returns RESOURCE_EXHAUSTED, with the
  // numbers, above the client's share.
  absl::StatusOr<Hold> Take(const std::string& client, size_t amount);

 private:
  const size_t limit_;
  const double share_;
  const std::shared_ptr<Counts> counts_;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CLIENT_SHARES_H_
