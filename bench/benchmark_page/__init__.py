"""The page of benchmarks, written from the figures of `bench/results`."""
