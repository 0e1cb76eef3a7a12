"""Alembic's folder; each revision runs one plain SQL file."""
