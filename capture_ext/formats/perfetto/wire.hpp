// Protocol buffers' wire format, under the names that the readers of packets use.
#pragma once

#include "formats/io/protobuf_fields.hpp"

namespace torchtrt_viz::perfetto {

using protobuf::Bytes;
using protobuf::Fields;
using protobuf::read_varint;
using protobuf::Wire;

}  // namespace torchtrt_viz::perfetto
