"""The `trellis` command."""
