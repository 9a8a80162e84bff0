// The generated service, with its methods in the forms that ServiceImpl needs.

#ifndef PENSTOCK_PS_SERVICE_BASE_H_
#define PENSTOCK_PS_SERVICE_BASE_H_

#include "ps/wire/ps.grpc.pb.h"

namespace penstock::ps {

using CheckpointBase = v1::ParameterServer::WithCallbackMethod_ChooseCut<
    v1::ParameterServer::WithCallbackMethod_BeginCheckpoint<
        v1::ParameterServer::WithCallbackMethod_AttendCheckpoint<
            v1::ParameterServer::WithCallbackMethod_HoldSteps<
                v1::ParameterServer::WithCallbackMethod_WriteShard<
                    v1::ParameterServer::WithCallbackMethod_CommitCheckpoint<
                        v1::ParameterServer::Service>>>>>>;
using TypedBase = v1::ParameterServer::WithCallbackMethod_Define<
    v1::ParameterServer::WithCallbackMethod_GetModel<
        v1::ParameterServer::WithCallbackMethod_Join<
            v1::ParameterServer::WithCallbackMethod_Attend<
                v1::ParameterServer::WithCallbackMethod_Describe<
                    v1::ParameterServer::WithCallbackMethod_GetView<
                        CheckpointBase>>>>>>;
// Methods that carry tensors are raw: they bypass protobuf's parser.
using Base = v1::ParameterServer::WithRawCallbackMethod_Initialize<
    v1::ParameterServer::WithRawCallbackMethod_Push<
        v1::ParameterServer::WithRawCallbackMethod_Pull<
            v1::ParameterServer::WithRawCallbackMethod_Replicate<TypedBase>>>>;

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVICE_BASE_H_
