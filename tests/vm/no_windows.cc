// Implements windows.h for builds without verbs.

#include "tests/vm/windows.h"

namespace penstock {

bool TrustsWindows() { return false; }

bool UsesWindowsAsWanted(const std::string&) { return false; }

}  // namespace penstock
