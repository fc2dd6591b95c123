"""Recordings of ROCm's profilers: JSON of rocprofv3, and rocpd databases."""
