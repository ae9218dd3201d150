"""What is kept for a time only, and its end."""
