// Memory windows on Soft-RoCE: the switch of tests.

#ifndef PENSTOCK_TESTS_VM_WINDOWS_H_
#define PENSTOCK_TESTS_VM_WINDOWS_H_

#include <string>

namespace penstock {

// Returns whether this program runs "with windows" (vm_test.bzl): it trusts
// memory windows whose range is not enforced, as those of Soft-RoCE. To link
// this library is what makes it do so, before main().
bool TrustsWindows();

// Returns whether `description`, of a path over verbs, says that payloads are
// read as this program wants it: through windows if TrustsWindows(), and else
// not.
bool UsesWindowsAsWanted(const std::string& description);

}  // namespace penstock

#endif  // PENSTOCK_TESTS_VM_WINDOWS_H_
