#include "transport/fabric/fake/link.h"

#include <utility>

#include "transport/fabric/fake/endpoint.h"

namespace penstock {
namespace fabric {
namespace fake {
namespace {

// Limits the steps of StepAll(): far more than any test needs.
constexpr int kMaxSteps = 1000 * 1000;

}  // namespace

Link::Link(const LinkOptions& options)
    : medium_(std::make_shared<Medium>(options)) {}

std::unique_ptr<fabric::Endpoint> Link::Take(Side side) {
  return std::unique_ptr<fabric::Endpoint>(new Endpoint(medium_, side));
}

bool Link::Step(Side to) {
  const std::shared_ptr<Medium> medium = medium_;
  return medium->Deliver(to);
}

bool Link::Step() {
  const uint64_t a = medium_->OldestFor(Side::kA);
  const uint64_t b = medium_->OldestFor(Side::kB);
  return Step(b == 0 || (a != 0 && a < b) ? Side::kA : Side::kB);
}

int Link::Deliver(int n) {
  int steps = 0;
  while (steps < n && Step()) ++steps;
  return steps;
}

int Link::StepAll() { return Deliver(kMaxSteps); }

void Link::SetReadOrder(Side reader, ReadOrder order) {
  medium_->SetReadOrder(reader, std::move(order));
}

void Link::Drop(const absl::Status& cause) {
  medium_->Break(Side::kA, cause);
  medium_->Break(Side::kB, cause);
}

void Link::DropOneSide(Side side, const absl::Status& cause) {
  medium_->Break(side, cause);
}

}  // namespace fake
}  // namespace fabric
}  // namespace penstock
