"""The network breakdown: what a unit of work takes longer on many nodes, and where that goes."""
