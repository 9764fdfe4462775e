"""An SGLang plugin: what its hybrid models need changed at run time to be served on a CPU.

SGLang's files stay as they came. Each module here holds one reason for a change:
    host        pinned memory and streams, of which a CPU has none
    scatters    the kernels that commit a verified state refuse tensors outside a GPU
    permits     what SGLang allows on GPUs alone: extra_buffer; overlap with speculation
    backends    the CPU attention that knows verify and draft steps asks for AMX instructions
    layers      two layers take most of a step when Triton interprets them
    host_tier   copies between a GPU and the host's memory are imported on GPUs alone
    early       releases up to 0.5.18 allocate on "cuda", and miss drafts in CPU attention
"""

from . import backends, early, host, host_tier, layers, permits, scatters


def register() -> None:
    """Register every hook that this release has a place for; called in each SGLang process."""
    host.register()
    scatters.register()
    permits.register()
    backends.register()
    layers.register()
    host_tier.register()
    early.register()
