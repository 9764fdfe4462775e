"""The instrument's own commands, one file each. Others register in `slotscope.commands`."""
