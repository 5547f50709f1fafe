"""Devices, processes, files from elsewhere, terminal and clock."""
