// A rendezvous whose peers send arbitrary bytes.

#ifndef PENSTOCK_TESTS_FUZZ_RENDEZVOUS_CALLS_H_
#define PENSTOCK_TESTS_FUZZ_RENDEZVOUS_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tensor_service/rendezvous.h"
#include "tensor_service/rendezvous.pb.h"

namespace penstock {
namespace fuzz {

// Makes the calls of rendezvous_service.cc, without gRPC, and checks that the
// rendezvous respects its limits.
class RendezvousCalls {
 public:
  enum Call : uint8_t {
    kSend,        // the bytes of a SendRequest
    kReceive,     // ReceiveRequest
    kExchange,    // RendezvousExchangeRequest
    kCancelStep,  // CancelStepRequest
    kFinishStep,  // FinishStepRequest
    kCancelWait,  // none: cancels the oldest waiting receive
    kCalls
  };

  // Limits of unfetched tensors and of waiting receives, small enough for short
  // inputs to reach.
  static constexpr size_t kBudgetBytes = 2 * 1024;
  static constexpr size_t kMaxWaiters = 3;

  RendezvousCalls();
  // Ends the remaining waits. Aborts if a call was answered twice or never.
  ~RendezvousCalls();

  void Make(Call call, const std::string& bytes);

 private:
  struct Wait {
    uint64_t number = 0;
    int answers = 0;
  };
  // Limits the length of an error, which quotes a key of up to 1 KiB.
  static constexpr size_t kMaxErrorBytes = 4 * 1024;

  absl::Status HandleSend(const tensor::v1::SendHeader& header,
                          const tensor::Bundle& bundle);
  absl::Status Send(const std::string& bytes);
  absl::Status Receive(const std::string& bytes);
  absl::Status Exchange(const std::string& bytes);
  absl::Status CancelStep(const std::string& bytes);
  absl::Status FinishStep(const std::string& bytes);
  void Await(const tensor::RendezvousKey& key);
  void CancelOldest();

  std::vector<std::shared_ptr<Wait>> waits_;
  size_t next_to_cancel_ = 0;
  tensor::Rendezvous rendezvous_;
};

}  // namespace fuzz
}  // namespace penstock

#endif  // PENSTOCK_TESTS_FUZZ_RENDEZVOUS_CALLS_H_
