// Stand-in, see NvInfer.h here.
#pragma once

#define NV_TENSORRT_MAJOR 10
#define NV_TENSORRT_VERSION 101600
