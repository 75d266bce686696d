"""Formulas and data frames: from columns to design matrices."""
