"""Celery workers: configuration, one event loop a process, and tasks that call domain services."""
