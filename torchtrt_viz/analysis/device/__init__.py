"""Host and device: operators, kernels, copies, collectives, launches, queues, idle time, memory, roofs."""
