"""Commands for maintainers, each run as `task NAME` from a checkout: boards, docs, pins, pictures, timing, simulations."""
