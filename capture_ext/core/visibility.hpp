// Symbols that other libraries of this project use are exported; everything else stays hidden.
#pragma once

#define TORCHTRT_VIZ_API __attribute__((visibility("default")))
