"""`sgl_kernel.utils`."""


def is_arch_support_pdl() -> bool:
    """Whether kernels may start before their predecessor has ended: never on a CPU."""
    return False
