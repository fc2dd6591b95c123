"""What the process imports from which the example's workers are forked; it starts no threads."""

import torch._inductor.config  # noqa: F401 - the first start of a profiler would import it in the middle of serving

import torchtrt_viz.examples.serving_pd.worker  # noqa: F401
