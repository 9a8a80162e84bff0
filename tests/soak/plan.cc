#include "tests/soak/plan.h"

namespace penstock::soak {
namespace {

class Dice {
 public:
  explicit Dice(std::mt19937_64* random) : random_(*random) {}

  uint64_t Number() { return random_(); }
  // Returns a number up to `max`.
  uint64_t UpTo(uint64_t max) { return random_() % (max + 1); }
  bool OneIn(uint64_t n) { return random_() % n == 0; }

 private:
  std::mt19937_64& random_;
};

// Returns a size, usually a small one. Some messages use the ring. Some are
// announced on shm, and some of those also on tcp. The largest is gRPC's limit
// minus the message's other fields.
size_t AnySize(Dice* dice) {
  switch (dice->UpTo(199)) {
    case 0:
      return 4 * 1024 * 1024 - 256;  // gRPC's limit, minus the other fields
    case 1:
    case 2:
      return dice->UpTo(1024 * 1024);
    case 3:
    case 4:
    case 5:
    case 6:
      return dice->UpTo(256 * 1024);
    default:
      return dice->OneIn(8) ? dice->UpTo(32 * 1024) : dice->UpTo(1024);
  }
}

Kind AnyKind(Dice* dice) {
  switch (dice->UpTo(9)) {
    case 0:
      return Kind::kUpload;
    case 1:
      return Kind::kDownload;
    case 2:
    case 3:
      return Kind::kChat;
    default:
      return Kind::kUnary;
  }
}

Ending AnyEnding(Dice* dice) {
  if (dice->OneIn(400)) return Ending::kDeadline;  // each takes some time
  if (!dice->OneIn(8)) return Ending::kOk;
  return dice->OneIn(2) ? Ending::kError : Ending::kCancel;
}

}  // namespace

Plan AnyPlan(std::mt19937_64* random) {
  Dice dice(random);
  Plan plan;
  plan.kind = AnyKind(&dice);
  // Makes uploads and downloads only with the synchronous API. Other calls use
  // the asynchronous APIs more often, so that all APIs get equally many calls.
  if (plan.kind == Kind::kUnary || plan.kind == Kind::kChat) {
    plan.api = static_cast<Api>(dice.UpTo(2));
  }
  plan.ending = AnyEnding(&dice);
  plan.metadata = dice.OneIn(4);
  plan.request_bytes = AnySize(&dice);
  plan.response_bytes = AnySize(&dice);
  if (plan.kind != Kind::kUnary) plan.messages = 1 + dice.UpTo(4);
  plan.seed = dice.Number();
  return plan;
}

}  // namespace penstock::soak
