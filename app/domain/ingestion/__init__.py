"""What becomes of a document after its upload: states, leases, the two indexing jobs, purges and the sweeper."""
