"""Reads records on disk only: tables, curves, pictures, pages."""
