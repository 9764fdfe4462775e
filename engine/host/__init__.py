"""The host tier: what is evicted from the device waits in the host's memory to be asked for."""
