#include "collectives/interruption.h"

namespace penstock::collectives {
namespace {

thread_local Interruptible::Asks asked = nullptr;

}  // namespace

Interruptible::Interruptible(Asks asks) : outer_(asked) { asked = asks; }

Interruptible::~Interruptible() { asked = outer_; }

bool IsWaitInterrupted() { return asked != nullptr && asked(); }

}  // namespace penstock::collectives
