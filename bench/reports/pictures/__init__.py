"""What people would rather look at: drawings of the report's one value, as SVG."""
