"""The parts of `vstatkit fit`: reading tables, its options, writing answers."""
