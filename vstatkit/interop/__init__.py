"""Ensembles and tables of other packages."""
