// Includes the headers that most tests in this folder need.

#include "penstock/penstock.h"
#include "tests/e2e/call.h"
#include "tests/e2e/raw.h"
#include "tests/e2e/scripted_service.h"
#include "tests/e2e/stack_test.h"
#include "third_party/precompiled/grpc_tests.h"
