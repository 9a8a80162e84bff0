// Keeps one client from taking all of what clients share.

#ifndef PENSTOCK_TENSOR_SERVICE_CLIENT_SHARES_H_
#define PENSTOCK_TENSOR_SERVICE_CLIENT_SHARES_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace penstock::tensor {

// Counts what each client has of something limited: bytes, or places. A client
// may have at most `share` of what the others leave of the limit. So one client
// that holds on to all that it may leaves room for the next, and that one for a
// third. Thread-safe.
class ClientShares {
 private:
  struct Counts;

 public:
  // An amount that counts for a client until this goes, on any thread. It may
  // outlive the ClientShares. Not thread-safe.
  class Hold {
   public:
    // Holds nothing.
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

  // `share` is above 0 and at most 1. With 1 one client may have everything.
  ClientShares(size_t limit, double share);
  ClientShares(const ClientShares&) = delete;
  ClientShares& operator=(const ClientShares&) = delete;

  // Counts `amount` for `client`. An empty name is the program itself, which no
  // share limits and nothing counts. Returns RESOURCE_EXHAUSTED, with the
  // numbers, above the client's share.
  absl::StatusOr<Hold> Take(const std::string& client, size_t amount);

 private:
  const size_t limit_;
  const double share_;
  const std::shared_ptr<Counts> counts_;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CLIENT_SHARES_H_
