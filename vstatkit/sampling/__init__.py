"""Which observations each base learner sees."""
