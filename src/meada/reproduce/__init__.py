"""Sets of runs: the paper's tables and figures; each run is identified by its recipe and run once."""
