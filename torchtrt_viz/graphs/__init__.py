"""Replayed CUDA and HIP graphs joined with the recording of their capture: kernels get operators back."""
