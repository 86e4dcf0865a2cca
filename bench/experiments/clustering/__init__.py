"""Clustering: many small jobs of k-means, of which none is lost and none is counted twice."""
