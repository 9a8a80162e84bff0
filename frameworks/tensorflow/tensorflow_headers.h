// The TensorFlow headers that most sources in this folder include.

#ifndef PENSTOCK_FRAMEWORKS_TENSORFLOW_TENSORFLOW_HEADERS_H_
#define PENSTOCK_FRAMEWORKS_TENSORFLOW_TENSORFLOW_HEADERS_H_

#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/distributed_runtime/tensor_coding.h"
#include "tensorflow/core/distributed_runtime/worker_interface.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/protobuf/worker.pb.h"
#include "third_party/precompiled/standard.h"

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_TENSORFLOW_HEADERS_H_
