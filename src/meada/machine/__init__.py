"""The machine: devices, processes, memory, clocks."""
