"""`python -m slotscope`: the same as the `slotscope` command."""

from slotscope.instrument.cli import main

main()
