// Memory windows on Soft-RoCE: a switch for tests.

#ifndef PENSTOCK_TESTS_VM_WINDOWS_H_
#define PENSTOCK_TESTS_VM_WINDOWS_H_

#include <string>

namespace penstock {

// Returns true if this program runs "with windows" (vm_test.bzl): it trusts
// memory windows without an enforced range, like Soft-RoCE's. Linking this
// library enables windows before main().
bool TrustsWindows();

// Returns true if `description`, of a path over verbs, shows that payloads are
// read in the wanted way: through windows if TrustsWindows(), otherwise without
// windows.
bool UsesWindowsAsWanted(const std::string& description);

}  // namespace penstock

#endif  // PENSTOCK_TESTS_VM_WINDOWS_H_
