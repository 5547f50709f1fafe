"""The machine: devices, processes, files from unknown sources, terminal and clock."""
