"""Speed benchmarks: the published training loop, this package and the machine's peak, compared in one run."""
