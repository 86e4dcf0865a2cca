"""The way in and the way home: `submit` and `collect` outside the cluster; `entry`, `probe` and `exporter` inside."""
