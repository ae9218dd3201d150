"""Tenants and their keys, for operators of the installation."""
