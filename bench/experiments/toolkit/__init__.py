"""What several experiments are made with: places for actors, load, percentiles, parts of the time, chaos."""
