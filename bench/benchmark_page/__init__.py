"""The pages of benchmarks, generated from the figures in `bench/results`."""
