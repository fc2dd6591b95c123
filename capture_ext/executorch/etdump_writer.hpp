// ETDump files (flatbuffer "ED00", size-prefixed, schema version 0) from an event log.
//
// Format: executorch/devtools/etdump/etdump_schema_flatcc.fbs. Every string is written once.
#pragma once

#include <string>

#include "core/error.hpp"
#include "core/visibility.hpp"
#include "executorch/event_log.hpp"

namespace torchtrt_viz::et {

// Fails where the file would pass the 2 GiB that the format's offsets reach.
TORCHTRT_VIZ_API std::string write_etdump(const EventColumns& columns);

}  // namespace torchtrt_viz::et
