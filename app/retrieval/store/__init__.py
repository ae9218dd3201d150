"""What every engine stands on: passages, their vectors, their term postings, and which versions may be believed."""
