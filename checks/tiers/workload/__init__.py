"""The tier `workload`: kernels of topic and mixture models against posteriors that are enumerated or integrated."""
