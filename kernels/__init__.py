"""Kernels: work on recurrent states, one folder per operator, each beside its torch reference.

CUDA tensors go to Triton, all others to the references, which are the CPU engine's hot path.
Triton is imported when the first CUDA tensor arrives. A row whose slot is 0 is padding: it reads
and writes no state, and its output is zero.
"""
