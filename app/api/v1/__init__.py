"""Version 1 of the REST interface."""
