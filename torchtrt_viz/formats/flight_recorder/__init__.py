"""Dumps of torch.distributed's Flight Recorder: the last collectives of one rank, as a pickle or as JSON.

NCCL, Gloo, XCCL and Ascend's HCCL write the same shape. A dump is a ring buffer: it begins at another number
on each rank. Whose it is, it does not hold: the file's name says the rank.
"""
